package iptables

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

// A process that finds rules of Services that are no more tells their frontends, once.
func TestFormerFrontends(t *testing.T) {
	_, fakes := newTestBackend(false)
	start := func() *Backend { return onFakes(fakes) }
	apply := func(b *Backend, p *plan.Plan) (former []string) {
		result, err := b.Apply(t.Context(), Compile(p, DefaultOptions()), backend.Request{})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range result.Former {
			former = append(former, k.String())
		}
		return former
	}
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	full := planOf(s, sl)
	if got := apply(start(), full); got != nil {
		t.Errorf("an empty kernel: %q, want none", got)
	}
	if got := apply(start(), full); got != nil {
		t.Errorf("nothing went: %q, want none", got)
	}
	b, empty := start(), plan.Build(plan.Config{}, plan.Host{}, model.NewSnapshot())
	var want []string
	for _, port := range full.Sorted() {
		for _, f := range port.Frontends {
			want = append(want, f.String())
		}
	}
	if diff := cmp.Diff(want, apply(b, empty)); diff != "" {
		t.Error(diff)
	}
	if got := apply(b, empty); got != nil {
		t.Errorf("told again: %q", got)
	}
}
