package plan_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// Each endpoint counts once, however many frontends and lists lead to it.
func TestEndpointsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.Build(gen.Config(t), gen.Host(t), gen.Snapshot(t))
		for _, port := range p.Ports {
			used := map[netip.AddrPort]bool{}
			for _, f := range port.Frontends {
				for _, r := range port.Access(f.Kind) {
					for _, e := range port.Endpoints(r.List) {
						used[e.AddrPort] = used[e.AddrPort] || r.Action == plan.Forward
					}
				}
			}
			want := 0
			for _, is := range used {
				if is {
					want++
				}
			}
			if got := port.EndpointsInUse(); got != want {
				t.Fatalf("%v: %d endpoints, want %d of %+v", port.ID, got, want, port)
			}
		}
	})
}
