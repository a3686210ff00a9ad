package ipvs

import (
	"maps"
	"slices"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/plan"
)

// TestCompareRefusesWhatDrains: the rules that are compared are those that Apply would write while something drains.
func TestCompareRefusesWhatDrains(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	var applied []plan.PortID
	w.inner.applied = func(r *ruleset) (backend.Result, error) {
		applied = slices.SortedFunc(maps.Keys(r.ports), plan.PortID.Compare)
		return backend.Result{}, nil
	}
	w.apply(backend.Request{})
	w.connect("10.244.1.5:8080", 1)
	w.change(noWeb())
	w.apply(backend.Request{})
	for _, connections := range []uint32{1, 0} { // nobody has looked yet whether the last one has ended
		w.connect("10.244.1.5:8080", connections)
		w.restart()
		if lines, err := w.backend.Compare(t.Context(), w.rules); err != nil || len(lines) != 0 {
			t.Errorf("differences:\n%s\n%v", join(lines), err)
		}
		compared := slices.SortedFunc(maps.Keys(w.rules.Rules().(*ruleset).ports), plan.PortID.Compare)
		if len(compared) != 1 || !slices.Equal(compared, applied) {
			t.Errorf("rules for %v are compared, and those in the kernel are for %v", compared, applied)
		}
	}
}
