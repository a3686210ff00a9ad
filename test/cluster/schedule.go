package cluster

import (
	"fmt"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// turn is the scheduler's: pods go to the nodes one after the other.
type turn struct{ next atomic.Uint64 }

// choose returns a node that has the labels that the pod wants: by its nodeSelector, or by the affinity to a node's
// name that a DaemonSet's pods have.
func (s *turn) choose(pod *v1.Pod, nodes []*Node) (string, error) {
	var fit []string
	for _, n := range nodes {
		object := n.object()
		if labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(object.Labels)) && nameFits(pod.Spec.Affinity, n.Name) {
			fit = append(fit, n.Name)
		}
	}
	if len(fit) == 0 {
		return "", fmt.Errorf("no node fits its selector %v", pod.Spec.NodeSelector)
	}
	return fit[int((s.next.Add(1)-1)%uint64(len(fit)))], nil
}

// nameFits reports whether an affinity allows a node of that name.
func nameFits(a *v1.Affinity, name string) bool {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		fits := !slices.ContainsFunc(term.MatchFields, func(r v1.NodeSelectorRequirement) bool {
			return r.Key == "metadata.name" && !slices.Contains(r.Values, name)
		})
		if fits {
			return true
		}
	}
	return false
}
