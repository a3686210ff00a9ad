package nftwalk

import (
	"fmt"
	"net/netip"

	"sluice/internal/nft"
	"sluice/internal/trace/weigh"
)

// values are what an expression can be for one packet, with their shares, and the share in which it is nothing because
// a lookup misses or a header is not there.
type values struct {
	weigh.Flow[nft.Value]
	missed  float64
	unknown bool
}

func one(v nft.Value) values { return values{Flow: weigh.Whole(v)} }

var nothing = values{missed: 1}

// eval finds the values of an expression. None stands for 0.
func (w *walker) eval(p *passage, e nft.Expr, s state) values {
	switch e := e.(type) {
	case nil:
		return one(nft.Value{}.Uint32(0))
	case nft.Meta:
		return w.meta(e, s)
	case nft.Payload:
		return w.payload(e, s)
	case nft.CT:
		return w.asked(e)
	case nft.Numgen:
		return w.numgen(e)
	case nft.Bits:
		got := w.eval(p, e.Of, s)
		got.Flow = got.Each(func(v nft.Value) nft.Value { return nft.Value{}.Uint32(combine(uint32Of(v), e.Op, e.By)) })
		return got
	case nft.Concat:
		return w.concat(p, e, s)
	case nft.Lookup:
		return w.lookup(p, e, s)
	}
	return values{unknown: true}
}

func (w *walker) meta(m nft.Meta, s state) values {
	switch m {
	case nft.NFProto:
		return one(nft.Value{}.Proto(nfproto(s.dst.Addr())))
	case nft.L4Proto:
		return one(nft.Value{}.Proto(uint8(w.pkt.Protocol)))
	case nft.Mark:
		return one(nft.Value{}.Uint32(s.mark))
	case nft.Priority:
		return one(nft.Value{}.Uint32(s.priority))
	}
	return values{unknown: true}
}

func nfproto(a netip.Addr) uint8 {
	if a.Is4() {
		return nft.ProtoIPv4
	}
	return nft.ProtoIPv6
}

// payload reads a header. One of the other family is not there; nft has every rule ask for the family first.
func (w *walker) payload(field nft.Payload, s state) values {
	ipv4 := s.dst.Addr().Is4()
	switch field {
	case nft.IPSaddr, nft.IP6Saddr:
		if ipv4 == (field == nft.IPSaddr) {
			return one(nft.Value{}.Addr(s.src))
		}
		return nothing
	case nft.IPDaddr, nft.IP6Daddr:
		if ipv4 == (field == nft.IPDaddr) {
			return one(nft.Value{}.Addr(s.dst.Addr()))
		}
		return nothing
	case nft.THDport:
		return one(nft.Value{}.Port(s.dst.Port()))
	}
	return values{unknown: true} // nobody said which port the client has
}

// asked is what the connection asked for, before anything was translated.
func (w *walker) asked(c nft.CT) values {
	to := w.pkt.To.Addr()
	switch c {
	case nft.CTOriginalDaddr, nft.CTOriginalDaddr6:
		if to.Is4() == (c == nft.CTOriginalDaddr) {
			return one(nft.Value{}.Addr(to))
		}
		return nothing
	}
	return values{unknown: true}
}

// numgen is every number, as likely as the others. Packets that are counted are spread evenly, too.
func (w *walker) numgen(g nft.Numgen) (all values) {
	if g.Mod == 0 || !w.afford(int(g.Mod)) {
		return values{unknown: true}
	}
	for n := range g.Mod {
		all.Add(nft.Value{}.Uint32(n), 1/float64(g.Mod))
	}
	return all
}

func combine(a uint32, op nft.BitOp, b uint32) uint32 {
	switch op {
	case nft.And:
		return a & b
	case nft.Or:
		return a | b
	default:
		return a ^ b
	}
}

func (w *walker) concat(p *passage, list nft.Concat, s state) values {
	all := one(nft.Value{})
	for _, e := range list {
		next := w.eval(p, e, s)
		if next.unknown {
			return next
		}
		if !w.afford(len(all.Parts()) * len(next.Parts())) {
			return values{unknown: true}
		}
		all = all.times(next)
	}
	return all
}

// times is every value of v followed by every one of next.
func (v values) times(next values) values {
	both := values{missed: 1 - (1-v.missed)*(1-next.missed)}
	for _, a := range v.Parts() {
		for _, b := range next.Parts() {
			both.Add(joined(a.State, b.State), a.Share*b.Share)
		}
	}
	return both
}

func (w *walker) lookup(p *passage, l nft.Lookup, s state) values {
	keys := w.eval(p, l.Key, s)
	found := values{missed: keys.missed, unknown: keys.unknown}
	for _, k := range keys.Parts() {
		if e, ok := w.find(l.Map, k.State); ok {
			p.words.has(w.rules.Set(l.Map), e)
			found.Add(e.Data, k.Share)
		} else {
			found.missed += k.Share
		}
	}
	return found
}

// find looks a key up. Of a set that rules fill it knows what was there before this packet.
func (w *walker) find(set string, key nft.Value) (nft.Element, bool) {
	declared := w.rules.Set(set)
	if declared == nil {
		w.fail(fmt.Sprintf("a rule asks for %s, which is not there", set))
		return nft.Element{}, false
	}
	e, ok := w.rules.Find(set, key)
	w.askedHistory = w.askedHistory || !ok && declared.Dynamic
	return e, ok
}
