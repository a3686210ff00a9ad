package scenario

import (
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/ipvs"
	"sluice/internal/backend/ipvs/ipsets"
	"sluice/internal/backend/nftables"
	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/testkit/flow"
	"sluice/internal/testkit/nstest"
)

// delivery is rules of nf_tables that leave packets to virtual servers.
func delivery() *nftables.Backend {
	o := nftables.DefaultOptions()
	o.Deliver = nftables.DeliverIPVS
	return nftables.New(o, nftables.Deps{})
}

func compileIPVS(p *plan.Plan) backend.Ruleset {
	return ipvs.Compile(p, ipvs.Options{}, delivery())
}

func ipvsInKernel(t testing.TB, _ *lab.Host) (backend.Backend, error) {
	t.Helper()
	nstest.RequireIPVS(t)
	return ipvs.New(ipvs.Options{}, ipvs.Deps{Rules: delivery(), Warn: func(err error) { t.Log(err) }}), nil
}

// IPVSOverIPTables is mode ipvs where there is no nf_tables: the same virtual servers beside rules of iptables and sets.
func IPVSOverIPTables() Mode {
	return Mode{
		Name: "ipvs over iptables", Require: nstest.RequireIPVS,
		Compile: func(p *plan.Plan) backend.Ruleset {
			return ipvs.Compile(p, ipvs.Options{}, ipsets.New(ipsets.DefaultOptions(), ipsets.Deps{}))
		},
		InKernel: func(t testing.TB, _ *lab.Host) (backend.Backend, error) {
			t.Helper()
			nstest.RequireIPVS(t)
			deps, _, err := ipsets.System(t.Context(), "")
			if err != nil {
				return nil, err
			}
			rules := ipsets.New(ipsets.DefaultOptions(), deps)
			return ipvs.New(ipvs.Options{}, ipvs.Deps{Rules: rules, Warn: func(err error) { t.Log(err) }}), nil
		},
	}
}

// virtual: addresses of Services are the node's.
func virtual(p *plan.Plan, f flow.Flow) flow.Flow { return f.Virtual(p) }
