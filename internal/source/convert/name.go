package convert

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// The labels and annotations that mean something to a Service proxy.
const (
	labelOtherProxy = "service.kubernetes.io/service-proxy-name"
	labelHeadless   = "service.kubernetes.io/headless"
	labelService    = "kubernetes.io/service-name"
	labelZone       = "topology.kubernetes.io/zone"

	// BalanceAnnotation chooses how a Service spreads its connections: "random", "round-robin" or "least-connections".
	BalanceAnnotation = "sluice.dev/balance"
	// SchedulerAnnotation names a Service's scheduler in mode ipvs.
	SchedulerAnnotation = "sluice.dev/ipvs-scheduler"
	// ProxyProtocolAnnotation has mode userspace tell a Service's endpoints who its clients are: "v1" or "v2".
	ProxyProtocolAnnotation = "sluice.dev/proxy-protocol"
	// WeightsAnnotation gives endpoints of a Service more of its connections than others.
	WeightsAnnotation = "sluice.dev/weights"
)

// ourAnnotations is what the names of Sluice's own annotations begin with.
const ourAnnotations = "sluice.dev/"

// unknownAnnotations tells of annotations that have the name of none of Sluice's, but look as if they had.
func unknownAnnotations(n *notes, annotations map[string]string) {
	known := []string{BalanceAnnotation, SchedulerAnnotation, ProxyProtocolAnnotation, WeightsAnnotation}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, ourAnnotations) && !slices.Contains(known, key) {
			n.notice("metadata.annotations["+key+"]", "not known, so it is ignored; there are %s", strings.Join(known, ", "))
		}
	}
}

// NameOf is the name of an object, in the namespace "default" if it names none.
func NameOf(meta metav1.ObjectMeta) model.Name {
	if meta.Namespace == "" {
		return model.Name{Namespace: metav1.NamespaceDefault, Name: meta.Name}
	}
	return model.Name{Namespace: shared(meta.Namespace), Name: meta.Name}
}

// name checks the name of an object with the given rule. Names end up in rules, comments and paths, so one that is
// not a name goes no further.
func (w *wrong) name(meta metav1.ObjectMeta, rule func(string) []string) model.Name {
	name := NameOf(meta)
	w.unscopedName(name.Name, rule)
	if why := first(validation.IsDNS1123Label(name.Namespace)); why != "" {
		w.skip("metadata.namespace", "%q: %s", name.Namespace, why)
	}
	return name
}

func (w *wrong) unscopedName(name string, rule func(string) []string) {
	if name == "" {
		w.skip("metadata.name", "required")
	} else if why := first(rule(name)); why != "" {
		w.skip("metadata.name", "%q: %s", name, why)
	}
}

func has(labels map[string]string, key string) bool {
	_, ok := labels[key]
	return ok
}
