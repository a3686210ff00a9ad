package localhost

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/testkit/gen"
)

// Whatever happened before, and whoever had a place meanwhile: once rules stand, exactly what the plan leaves to the proxy
// is listened at.
func TestRandomPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		proxy := &fake{targets: map[relay.Key]relay.Target{}, taken: map[netip.AddrPort]bool{}}
		s := New(Config{
			Open: func() (Proxy, error) { return proxy, nil }, Log: slog.New(slog.DiscardHandler),
			Tell: func(model.Name, string, string) {},
		})
		planner := plan.NewPlanner(policy(t))
		t.Repeat(map[string]func(*rapid.T){
			"objects": func(t *rapid.T) { s.Update(planner.Plan(), planner.Update(gen.Delta(t))) },
			"policy":  func(t *rapid.T) { s.Update(planner.Plan(), planner.SetConfig(policy(t))) },
			"taken": func(t *rapid.T) {
				at := relay.Loopback(rapid.SampledFrom(model.Families[:]).Draw(t, "family"))
				proxy.taken[netip.AddrPortFrom(at, rapid.SampledFrom(numbers(planner.Plan())).Draw(t, "port"))] = true
			},
			"rules stand": func(*rapid.T) { s.Settled() },
			"": func(t *rapid.T) {
				for k, got := range proxy.targets {
					if want, ok := target(planner.Plan().Ports[k.Port]); !ok || !same(want, got) {
						t.Fatalf("listens for %+v, want %+v", got, want)
					}
				}
			},
		})
		s.Settled()
		clear(proxy.taken)
		s.retry()
		want := map[relay.Key]relay.Target{}
		for _, p := range planner.Plan().Ports {
			if tgt, ok := target(p); ok && planner.Plan().Node.NodePorts[p.ID.Family].Proxied {
				want[tgt.Key] = tgt
			}
		}
		if diff := cmp.Diff(want, proxy.targets, cmp.Comparer(same)); diff != "" {
			t.Errorf("listeners (-want +got):\n%s", diff)
		}
	})
}

func policy(t *rapid.T) plan.Config {
	c := gen.Config(t)
	c.LocalhostProxy = rapid.Bool().Draw(t, "proxy")
	c.NodePortAddresses.Localhost = c.NodePortAddresses.Localhost || rapid.Bool().Draw(t, "localhost")
	return c
}

// numbers are the node ports of a plan, and one that is none.
func numbers(p *plan.Plan) []uint16 {
	all := []uint16{1}
	for _, port := range p.Sorted() {
		if n, ok := nodePort(port); ok {
			all = append(all, n)
		}
	}
	return all
}

func same(a, b relay.Target) bool {
	ends := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	return a.Key == b.Key && cmp.Equal(a, b, ends)
}
