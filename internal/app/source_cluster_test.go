package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
	"sluice/internal/source/kube"
)

// A problem reads on its own, wherever it is told; an empty list stays one, which is the end of them.
func TestProblemsNameTheirObject(t *testing.T) {
	node := kube.Object{Kind: "Node", Name: model.Name{Name: "node-a"}}
	service := kube.Object{Kind: "Service", Name: model.Name{Namespace: "default", Name: "web"}}
	e := eventOf(kube.Change{Problems: map[kube.Object][]string{node: {"not there"}, service: nil}})
	want := map[any][]string{node: {"Node node-a: not there"}, service: nil}
	if diff := cmp.Diff(want, e.Problems); diff != "" {
		t.Error(diff)
	}
	if e.Input == nil {
		t.Error("a change from the API server is no input")
	}
}
