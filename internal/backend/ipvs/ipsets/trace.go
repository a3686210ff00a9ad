package ipsets

import (
	"net/netip"
	"slices"

	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
)

// Trace walks a new connection's first packet through the rules of a kernel that has no virtual servers: what they would
// serve goes unhandled.
func (r *Ruleset) Trace(pkt plan.Packet) trace.Result { return r.TraceBalanced(pkt, nil) }

// TraceBalanced walks it with virtual servers: pick tells the endpoints of the one that takes a packet, which may be none,
// or that there is none. One of a mark comes before one of an address.
func (r *Ruleset) TraceBalanced(pkt plan.Packet, pick func(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool)) trace.Result {
	f := r.families[model.FamilyOf(pkt.To.Addr())]
	host := iptwalk.Host{Addrs: slices.Clone(f.node.Addresses), Sets: f.lookup(), Balance: pick}
	for e := range f.entries[ipvsIPs] {
		host.Addrs = append(host.Addrs, e.Addr)
	}
	return iptwalk.Walk(f.tables, pkt, host)
}

// lookup finds the family's sets by name, each made when it is first asked for.
func (f *family) lookup() func(name string) *sets.Set {
	made := map[string]*sets.Set{}
	return func(name string) *sets.Set {
		k, of, ok := kindOf(name)
		if !ok || of != f.family || !f.present(k) {
			return nil
		}
		if made[name] == nil {
			made[name] = f.set(k)
		}
		return made[name]
	}
}
