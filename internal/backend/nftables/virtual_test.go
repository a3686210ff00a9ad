package nftables

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace"
)

// virtualServers are what ipvs has to have for a plan and the marks of a Ruleset.
type virtualServers struct {
	*plan.Plan
	rules *Ruleset
}

// pick is ipvs: the endpoints of a mark or, if that is none's, of an address.
func (v virtualServers) pick(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
	for _, port := range v.Ports {
		if m, ok := v.rules.Mark(port.ID); ok && m == mark && model.FamilyOf(to.Addr()) == port.ID.Family {
			return port.Endpoints(port.External[plan.ClientOutside].List), true
		}
	}
	if to.Addr().IsLoopback() {
		return nil, false
	}
	port, fe, ok := v.Find(to, p)
	if !ok {
		return nil, false
	}
	r := port.Access(fe.Kind)[plan.ClientPod]
	return port.Endpoints(r.List), r.Action == plan.Forward
}

// decide is what the plan says, as it is where addresses of Services are the node's.
func (v virtualServers) decide(pkt plan.Packet) trace.Result {
	d := v.Decide(pkt)
	for i := range d.Targets {
		// Who asks an address of its own for another port is not known from one that asks for the endpoint itself; ipvs
		// translates the answer all the same.
		t := &d.Targets[i]
		t.Masquerade = t.Masquerade && (d.Route.Masquerade || pkt.From != pkt.To.Addr())
	}
	return oracle.Decided(d)
}

// isVirtual reports whether an address is the node's only because of a Service.
func (v virtualServers) isVirtual(a netip.Addr) bool {
	return !v.Node.IsLocal(a) && slices.ContainsFunc(v.Sorted(), func(p *plan.Port) bool {
		return slices.ContainsFunc(p.Frontends, func(f plan.Frontend) bool { return f.Addr == a })
	})
}

func ipvsOptions() Options {
	o := DefaultOptions()
	o.Deliver = DeliverIPVS
	return o
}

func TestRulesForIPVSMeanThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := gen.Config(t)
		cfg.GuardClusterIPs, cfg.GuardAddresses, cfg.LocalhostNodePorts = true, true, false
		p := plan.Build(cfg, gen.Host(t), gen.Snapshot(t))
		r := Compile(p, ipvsOptions())
		v := virtualServers{p, r}
		for range 100 {
			pkt := gen.Packet(t, p)
			if v.isVirtual(pkt.From) {
				continue // an address of the node then, which the plan does not know
			}
			want, got := v.decide(pkt), r.TraceBalanced(pkt, v.pick)
			if !oracle.Same(want, got) {
				t.Fatalf("%+v\nplan: %s\nrules: %s %s\n%s\n%s", pkt, oracle.Short(want), oracle.Short(got), got.Error, oracle.Steps(got), text(t, r))
			}
		}
	})
}
