package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// PodAt is the pod ("namespace/name") that has an address, or "" if none has. A pod of the host's network is not found.
func (c *Cluster) PodAt(a netip.Addr) string {
	c.kubelet.mu.Lock()
	defer c.kubelet.mu.Unlock()
	for key, s := range c.kubelet.running {
		for _, own := range s.addrs {
			if own == a && s.own {
				return key
			}
		}
	}
	return ""
}

// Pod is where a pod runs: the machine to dial from, its addresses, and its node.
type Pod struct {
	Host  *lab.Host
	Node  string
	Addrs []netip.Addr
}

// Pod returns a pod, once it runs.
func (c *Cluster) Pod(t testing.TB, namespace, name string) Pod {
	t.Helper()
	var s *sandbox
	WaitFor(t, "pod "+name+" to run", func() error {
		if s = c.kubelet.sandbox(namespace + "/" + name); s == nil {
			return errNotYet
		}
		return nil
	})
	return Pod{Host: s.host, Node: s.node.Name, Addrs: s.addrs}
}

// Address is the pod's address of a family; not valid if it has none.
func (p Pod) Address(f model.Family) netip.Addr {
	for _, a := range p.Addrs {
		if model.FamilyOf(a) == f {
			return a
		}
	}
	return netip.Addr{}
}

// Dial opens a connection from the pod, as [lab.Host.Dial] does.
func (p Pod) Dial(t testing.TB, d lab.Dial) lab.Outcome {
	t.Helper()
	d.From = p.Address(model.FamilyOf(d.To.Addr()))
	return Dial(t, p.Host, d)
}

// Dial is [lab.Host.Dial] where the lab has to work.
func Dial(t testing.TB, h *lab.Host, d lab.Dial) lab.Outcome {
	t.Helper()
	o, err := h.Dial(d)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// SetReady makes a pod ready or not, as its probe would.
func (c *Cluster) SetReady(t testing.TB, namespace, pod string, ready bool) {
	t.Helper()
	value := "true"
	if !ready {
		value = "false"
	}
	c.annotate(t, namespace, pod, map[string]string{ReadyAnnotation: value})
}

// SetLinger makes a pod serve that long after its deletion.
func (c *Cluster) SetLinger(t testing.TB, namespace, pod string, d time.Duration) {
	t.Helper()
	c.annotate(t, namespace, pod, map[string]string{LingerAnnotation: d.String()})
}

func (c *Cluster) annotate(t testing.TB, namespace, pod string, annotations map[string]string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err == nil {
		_, err = c.Client.CoreV1().Pods(namespace).Patch(ctx(), pod, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// SetIngress writes a Service's load balancer status, as a cloud's controller would. An empty list takes it away.
func (c *Cluster) SetIngress(t testing.TB, namespace, service string, addrs ...string) {
	t.Helper()
	ingress := []map[string]string{}
	for _, a := range addrs {
		ingress = append(ingress, map[string]string{"ip": a})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}})
	if err == nil {
		_, err = c.Client.CoreV1().Services(namespace).Patch(ctx(), service, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// WaitPods waits until the pods of these labels are as many, all ready, and none is being deleted.
func (c *Cluster) WaitPods(t testing.TB, namespace, selector string, want int) {
	t.Helper()
	WaitFor(t, fmt.Sprintf("%d pods %s", want, selector), func() error {
		list, err := c.Client.CoreV1().Pods(namespace).List(ctx(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		if ready != want || len(list.Items) != want {
			return fmt.Errorf("there are %d, of which %d are ready", len(list.Items), ready)
		}
		return nil
	})
}

func isReady(p *v1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}
