package relay_test

import (
	"net/netip"
	"slices"
	"testing"

	"sluice/internal/plan"
	"sluice/internal/relay"
)

// Sessions of UDP stay with endpoints that get nothing new, save with those that a list of this node's may not have.
func TestDrainingTargets(t *testing.T) {
	end := func(addr string, local bool) plan.Endpoint {
		return plan.Endpoint{AddrPort: netip.MustParseAddrPort(addr), Local: local, Weight: 1}
	}
	here, there, leaves, left := end("10.244.0.5:80", true), end("10.244.0.6:80", false), end("10.244.0.7:80", true), end("10.244.0.8:80", false)
	p := &plan.Port{
		Cluster: []plan.Endpoint{there}, Local: []plan.Endpoint{here}, Draining: []plan.Endpoint{leaves, left},
	}
	for l, want := range map[plan.List][]plan.Endpoint{
		plan.ListCluster: {here, leaves, left}, plan.ListLocal: {leaves},
	} {
		if got := relay.TargetOf(p, l).Draining; !slices.Equal(got, want) {
			t.Errorf("list %d: draining %v, want %v", l, got, want)
		}
	}
}
