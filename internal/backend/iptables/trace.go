package iptables

import (
	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
)

// Trace walks a new connection's first packet through the rules.
func (r *Ruleset) Trace(pkt plan.Packet) trace.Result {
	f := r.families[model.FamilyOf(pkt.To.Addr())]
	return iptwalk.Walk(f.rules(), pkt, iptwalk.Host{Addrs: f.node.Addresses, RouteLocalnet: f.localhost()})
}

// rules are the tables with structure, as Parse reads them out of what render writes.
func (f *family) rules() *rules.Ruleset {
	rs := &rules.Ruleset{}
	for _, t := range tables {
		table := rs.AddTable(t.String())
		for _, j := range f.jumps(t) {
			c := table.AddChain(j.from)
			c.Policy = "ACCEPT"
			c.Add(ruleOf(j.rule).rule)
		}
		for _, ch := range f.ordered(t) {
			c := table.AddChain(ch.name)
			for _, l := range lines(ch.text) {
				c.Add(ruleOf(l).rule)
			}
		}
	}
	return rs
}
