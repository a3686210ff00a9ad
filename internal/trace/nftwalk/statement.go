package nftwalk

import (
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// statement does to what matched so far what a statement says.
func (w *walker) statement(s nft.Statement, p *passage) {
	switch s := s.(type) {
	case nft.Is:
		w.test(p, s.Left, func(v nft.Value) bool { return equalBits(v, s.Right, s.Prefix) != s.Not })
	case nft.OneOf:
		w.test(p, s.Left, func(v nft.Value) bool { return slices.Contains(s.List, v) })
	case nft.In:
		w.test(p, s.Left, func(v nft.Value) bool { return w.has(p, s.Set, v) != s.Not })
	case nft.IsName:
		w.testState(p, func(state) bool { return w.isName(s) })
	case nft.HasBits:
		w.testState(p, func(st state) bool { return w.connection(s.Left, st)&s.Bits != 0 })
	case nft.FibIsLocal:
		w.testState(p, func(st state) bool { return w.host.local(st.fibAddr(s.Of)) != s.Not })
	default:
		w.action(s, p)
	}
}

func (w *walker) action(s nft.Statement, p *passage) {
	switch s := s.(type) {
	case nft.SetMeta:
		w.setMeta(s, p)
	case nft.Vmap:
		w.each(p, s.Key, func(st state, key nft.Value, share float64) {
			e, ok := w.find(s.Map, key)
			if !ok {
				p.missed.Add(st, share)
				return
			}
			p.words.has(w.rules.Set(s.Map), e)
			p.words.say("", verdictText(e.Verdict))
			p.send(e.Verdict, st, share)
		})
	case nft.DNAT:
		w.dnat(s, p)
	case nft.DNATAddr:
		w.dnatAddr(s, p)
	case nft.Masquerade:
		p.words.say("the source becomes ", "an address of this node")
		for _, part := range p.take().Each(func(st state) state { st.snat = true; return st }).Parts() {
			p.send(translated, part.State, part.Share)
		}
	case nft.Reject:
		p.words.say("refused with ", s.With())
		p.rejected += p.take().Total()
	case nft.Verdict:
		p.words.say("", verdictText(s))
		for _, part := range p.take().Parts() {
			p.send(s, part.State, part.Share)
		}
	case nft.Update, nft.Remove: // for the packets of later connections
	default:
		w.unknown(p, p.take())
	}
}

// translated is the verdict of a translation.
var translated = nft.Verdict{Kind: nft.Accept}

// unknown is a statement, or an expression in one, that is not known here: half of the packets match.
func (w *walker) unknown(p *passage, f flow) {
	w.assumed = true
	p.words.doubt = true
	w.warn("not understood, so both ways are followed: " + p.rule.String())
	for _, part := range f.Parts() {
		p.at.Add(part.State, part.Share/2)
		p.missed.Add(part.State, part.Share/2)
	}
}

// each gives do every value that the expression has for what matched so far, to put it where it goes. What has no
// value does not match.
func (w *walker) each(p *passage, e nft.Expr, do func(s state, v nft.Value, share float64)) {
	var doubtful flow
	for _, part := range p.take().Parts() {
		got := w.eval(p, e, part.State)
		if got.unknown {
			doubtful.Add(part.State, part.Share)
			continue
		}
		p.missed.Add(part.State, part.Share*got.missed)
		for _, v := range got.Parts() {
			do(part.State, v.State, part.Share*v.Share)
		}
	}
	if !doubtful.Empty() {
		w.unknown(p, doubtful)
	}
}

func (w *walker) test(p *passage, e nft.Expr, holds func(nft.Value) bool) {
	w.each(p, e, func(s state, v nft.Value, share float64) {
		if holds(v) {
			p.at.Add(s, share)
		} else {
			p.missed.Add(s, share)
		}
	})
}

func (w *walker) testState(p *passage, holds func(state) bool) {
	yes, no := p.take().Divide(holds)
	p.at = yes
	p.missed.AddAll(no)
}

// isName compares with the name of the interface that the packet came in by. A packet of the node's own has none.
func (w *walker) isName(s nft.IsName) bool {
	if w.pkt.Via == plan.ViaForward && w.in == "" && s.Name != "lo" {
		w.askedInterface = true
	}
	if s.Wildcard {
		return strings.HasPrefix(w.in, s.Name) != s.Not
	}
	return (w.in == s.Name) != s.Not
}

// has tells whether a set has a key.
func (w *walker) has(p *passage, set string, key nft.Value) bool {
	e, ok := w.find(set, key)
	switch declared := w.rules.Set(set); {
	case ok:
		p.words.has(declared, e)
	case declared != nil:
		p.words.lacks(declared, key)
	}
	return ok
}

func (w *walker) setMeta(s nft.SetMeta, p *passage) {
	_, looksUp := s.To.(nft.Lookup) // which says what it found
	w.each(p, s.To, func(st state, v nft.Value, share float64) {
		switch s.Meta {
		case nft.Mark:
			st.mark = uint32Of(v)
		case nft.Priority:
			st.priority = uint32Of(v)
		}
		if !looksUp {
			p.words.say("the "+string(s.Meta)+" becomes ", metaText(s.Meta, v))
		}
		p.at.Add(st, share)
	})
}

func (w *walker) dnat(s nft.DNAT, p *passage) {
	w.each(p, s.To.Key, func(st state, key nft.Value, share float64) {
		e, ok := w.find(s.To.Map, key)
		if !ok || s.IPv6 != st.dst.Addr().Is6() {
			p.missed.Add(st, share)
			return
		}
		st.dst, st.dnat = addrPortOf(e.Data, s.IPv6), true
		p.words.say("the destination becomes ", st.dst.String()+comment(e))
		p.send(translated, st, share)
	})
}

func (w *walker) dnatAddr(s nft.DNATAddr, p *passage) {
	p.words.say("the destination becomes ", s.To.String())
	for _, part := range p.take().Parts() {
		st := part.State
		st.dst, st.dnat = netip.AddrPortFrom(s.To, st.dst.Port()), true
		p.send(translated, st, part.Share)
	}
}
