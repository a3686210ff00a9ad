package reconcile

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
)

var proxyAt = netip.MustParseAddrPort("192.168.10.11:10053")

// proxying is a mode whose rules lead every Service port that has endpoints to a proxy.
type proxying struct{ *kernel }

type leading struct {
	ruleset
	mapped *plan.Plan
	moved  []plan.Change
}

func toProxy(p *plan.Port) *plan.Port {
	m := *p
	if len(m.Cluster) > 0 {
		m.Cluster = []plan.Endpoint{{AddrPort: proxyAt, Weight: 1}}
	}
	return &m
}

func (r *leading) Update(p *plan.Plan, c plan.Changes) {
	r.ruleset.Update(p, c)
	r.moved = append(r.moved, r.mapped.Follow(p, c.Node, c.IDs(), toProxy).Ports...)
}

func (r *leading) Leads() (*plan.Plan, plan.Changes) {
	moved := r.moved
	r.moved = nil
	return r.mapped, plan.Changes{Ports: moved}
}

func (k proxying) Compile(p *plan.Plan) backend.Ruleset {
	return &leading{ruleset: k.kernel.Compile(p).(ruleset), mapped: p.Mapped(toProxy)}
}

func (k proxying) Apply(ctx context.Context, r backend.Ruleset, req backend.Request) (backend.Result, error) {
	return k.kernel.Apply(ctx, r.(*leading).ruleset, req)
}

// Where the rules lead to a proxy, entries do too. They stay as long as there is anything to proxy, whatever the
// endpoints are; and so do those that an earlier mode wrote, as long as their endpoint does.
func TestSweepsByWhatTheRulesLeadTo(t *testing.T) {
	run(t, func(w *world) {
		w.Backend = proxying{w.kernel}
		flow := func(server netip.AddrPort) flows.Flow {
			return flows.Flow{
				Client: netip.MustParseAddrPort("10.244.9.9:4000"), To: netip.MustParseAddrPort("10.96.0.1:53"), Server: server,
			}
		}
		proxied, direct := flow(proxyAt), flow(netip.MustParseAddrPort("10.244.0.1:5300"))
		w.tracking.flows = []flows.Flow{proxied, direct, flow(netip.MustParseAddrPort("192.168.10.11:10054"))}
		w.put(service("a", 1, 5300))
		w.wantFlows("there is an endpoint", proxied, direct)
		w.put(service("a", 1, 5301))
		w.wantFlows("another endpoint", proxied)
		w.put(service("a", 1))
		w.wantFlows("no endpoint")

		w.put(service("a", 1, 5300))
		w.wait(time.Minute)
		w.tracking.flows = []flows.Flow{proxied}
		w.remove("a")
		w.wantFlows("the Service is gone")
	})
}

func (w *world) wantFlows(when string, want ...flows.Flow) {
	w.t.Helper()
	w.wait(10 * time.Second)
	if !slices.Equal(w.tracking.flows, want) {
		w.t.Errorf("%s: left %v, want %v", when, w.tracking.flows, want)
	}
}
