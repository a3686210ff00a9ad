package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
	"sluice/internal/plan"
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

// In a cluster, that this machine's Node is absent is told by whatever name it goes; of manifests, where one is given.
func TestAbsentNodeIsTold(t *testing.T) {
	for _, tt := range []struct {
		in   Input
		want int
	}{
		{Input{Config: flags(t)}, 1},
		{Input{Config: flags(t, "--node=node-a")}, 1},
		{Input{Config: flags(t), Manifests: []string{"here"}}, 0},
		{Input{Config: flags(t, "--node=node-a"), Manifests: []string{"here"}}, 1},
	} {
		p := plan.Build(tt.in.policy(tt.in.Config), plan.Host{}, model.NewSnapshot())
		if got := p.NodeProblems(); len(got) != tt.want {
			t.Errorf("--node %q, manifests %v: problems %v, want %d", tt.in.Config.Plan.NodeName, tt.in.Manifests, got, tt.want)
		}
	}
}
