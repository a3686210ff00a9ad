package nftables

import (
	"bytes"
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/nftwalk"
)

// Trace walks a new connection's first packet through the table. With [DeliverIPVS] it meets no virtual servers.
func (r *Ruleset) Trace(pkt plan.Packet) trace.Result {
	return r.TraceBalanced(pkt, func(netip.AddrPort, model.Protocol, uint32) ([]plan.Endpoint, bool) { return nil, false })
}

// TraceBalanced is Trace where ipvs has virtual servers: pick has the endpoints of the one for an address or, before
// that, for a packet mark, and reports false if there is none. All addresses of Services but the node's own are on its
// device.
func (r *Ruleset) TraceBalanced(pkt plan.Packet, pick func(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool)) trace.Result {
	t := newWalked(r.contents())
	host := nftwalk.Host{Addrs: r.addresses, RouteLocalnet: r.structure.localhost}
	if r.structure.ipvs {
		host.IPVS = &nftwalk.IPVS{Has: t.hasAddress, Pick: pick}
	}
	return nftwalk.Walk(t, pkt, host)
}

// walked is contents as the walk sees them. Elements are looked up in an index of their set, made when it is first asked
// for: most packets meet few sets.
type walked struct {
	contents *contents
	chains   []*nft.Chain
	byName   map[string]setID
	sets     [setCount]nft.Set
	index    [setCount]map[nft.Value]nft.Element
}

func newWalked(c *contents) *walked {
	t := &walked{contents: c, byName: map[string]setID{}}
	for ch := range c.chains {
		t.chains = append(t.chains, ch)
	}
	for id := range c.setIDs {
		t.sets[id] = sized(id, &c.sizes)
		t.byName[id.name()] = id
	}
	return t
}

// Chains are all chains.
func (t *walked) Chains() []*nft.Chain { return t.chains }

// hasAddress reports whether some Service has an address.
func (t *walked) hasAddress(a netip.Addr) bool {
	f := model.FamilyOf(a)
	_, cluster := t.Find(setClusterIPs.of(f).name(), nft.Value{}.Addr(a))
	_, external := t.Find(setExternalIPs.of(f).name(), nft.Value{}.Addr(a))
	return cluster || external
}

// Chain finds a chain.
func (t *walked) Chain(name string) *nft.Chain {
	for _, c := range t.chains {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Set finds the definition of a set.
func (t *walked) Set(name string) *nft.Set {
	if id, ok := t.byName[name]; ok {
		return &t.sets[id]
	}
	return nil
}

// Find finds an element.
func (t *walked) Find(set string, key nft.Value) (e nft.Element, ok bool) {
	id, ok := t.byName[set]
	if !ok {
		return e, false
	}
	if t.sets[id].Interval {
		for e := range t.contents.elements(id, references{}) {
			if holds(t.sets[id].Key, e, key) {
				return *e, true
			}
		}
		return e, false
	}
	if t.index[id] == nil {
		t.index[id] = map[nft.Value]nft.Element{}
		for e := range t.contents.elements(id, references{}) {
			t.index[id][e.Key] = *e
		}
	}
	e, ok = t.index[id][key]
	return e, ok
}

// holds reports whether an element's range has a key, field by field.
func holds(fields []nft.Field, e *nft.Element, key nft.Value) bool {
	for i := range fields {
		first, at, last := e.Key.At(fields, i), key.At(fields, i), e.End.At(fields, i)
		if compare(first, at) > 0 || compare(at, last) > 0 {
			return false
		}
	}
	return true
}

// compare orders values of fields that are in network order.
func compare(a, b nft.Value) int { return bytes.Compare(a.AppendTo(nil), b.AppendTo(nil)) }
