package nftables

import (
	"errors"
	"slices"
	"testing"

	"sluice/internal/backend"
)

// Loopback addresses are routed once the table guards them, and again when all is looked at.
func TestRouteLocalnet(t *testing.T) {
	b := inKernel(t)
	var told []bool
	broken := errors.New("read-only")
	b.deps.RouteLocalnet = func(on bool) error {
		told = append(told, on)
		if len(told) == 1 {
			return broken
		}
		return nil
	}
	w := newRig(t, service(1, 5))
	apply(t, b, w.rules)
	cfg := testConfig()
	cfg.LocalhostNodePorts = true
	w.rules.Update(w.planner.Plan(), w.planner.SetConfig(cfg))
	if _, err := b.Apply(t.Context(), w.rules, backend.Request{}); !errors.Is(err, broken) || backend.FailedFamilies(err) != [2]bool{true, false} {
		t.Errorf("error is %v, want one of IPv4", err)
	}
	apply(t, b, w.rules)
	apply(t, b, w.rules)
	applyReq(t, b, w.rules, recheck)
	cfg.LocalhostNodePorts = false
	w.rules.Update(w.planner.Plan(), w.planner.SetConfig(cfg))
	apply(t, b, w.rules)
	if want := []bool{true, true, true}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	b.deps.RouteLocalnet = nil
}
