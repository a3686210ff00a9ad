package ipvs_test

import (
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/backend/ipvs"
	"sluice/internal/backend/nftables"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace"
)

// virtual is a plan on a node where addresses of Services are the node's own.
type virtual struct{ *plan.Plan }

// decide is what the plan says, but for one client.
func (v virtual) decide(pkt plan.Packet) trace.Result {
	d := v.Decide(pkt)
	for i := range d.Targets {
		// Who asks an address of its own for another port is not told from one that asks for the endpoint itself.
		t := &d.Targets[i]
		t.Masquerade = t.Masquerade && (d.Route.Masquerade || pkt.From != pkt.To.Addr())
	}
	return oracle.Decided(d)
}

// bound reports whether an address is on the device.
func (v virtual) bound(a netip.Addr) bool {
	return !v.Node.IsLocal(a) && slices.ContainsFunc(v.Sorted(), func(p *plan.Port) bool {
		return slices.ContainsFunc(p.Frontends, func(f plan.Frontend) bool { return f.Addr == a })
	})
}

// delivery is the inner mode of the tests: rules of nf_tables.
func delivery() *nftables.Backend {
	o := nftables.DefaultOptions()
	o.Deliver = nftables.DeliverIPVS
	return nftables.New(o, nftables.Deps{})
}

// TestServersAndRulesMeanThePlan: the virtual servers and the rules beside them, compiled and updated, do to a packet what
// the plan says.
func TestServersAndRulesMeanThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := gen.Config(t)
		cfg.GuardClusterIPs, cfg.GuardAddresses, cfg.LocalhostNodePorts = true, true, false
		planner := plan.NewPlanner(cfg)
		planner.SetHost(gen.Host(t))
		planner.Update(model.Delta(*gen.Snapshot(t)))
		r := ipvs.Compile(planner.Plan(), ipvs.Options{}, delivery())
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			changes := planner.Update(gen.Delta(t))
			r.Update(planner.Plan(), changes)
		}
		p := virtual{planner.Plan()}
		for range 100 {
			pkt := gen.Packet(t, p.Plan)
			if p.bound(pkt.From) {
				continue // an address of the node then, which the plan does not know
			}
			if want, got := p.decide(pkt), r.Trace(pkt); !oracle.Same(want, got) {
				t.Fatalf("%+v\nplan: %s\nrules: %s %s\n%s\n%s", pkt, oracle.Short(want), oracle.Short(got), got.Error, oracle.Steps(got), text(t, r))
			}
		}
	})
}

func text(t rapid.TB, r interface{ Render(io.Writer) error }) string {
	var b strings.Builder
	if err := r.Render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
