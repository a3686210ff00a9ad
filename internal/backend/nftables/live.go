package nftables

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/nftwalk"
)

// ErrNoTable occurs when the kernel has no table of ours.
var ErrNoTable = errors.New("this kernel has no table inet " + tableName)

// TraceKernel walks a packet through our table as the kernel has it. Its elements are read. Of its rules the kernel gives
// hashes, by which those are known that options and a node like those of r make, however it tells pods; any other may match
// or not.
func (b *Backend) TraceKernel(ctx context.Context, r *Ruleset, pkt plan.Packet, host nftwalk.Host) (trace.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return trace.Result{}, err
	}
	have, err := b.readFrame(ctx)
	if err != nil {
		return trace.Result{}, err
	}
	if have == nil {
		return trace.Result{}, ErrNoTable
	}
	known, err := b.knownRules(ctx, r, have)
	if err != nil {
		return trace.Result{}, err
	}
	t := &live{Backend: b, ctx: ctx, frame: have}
	t.decode(known)
	result := nftwalk.Walk(t, pkt, host)
	if t.unknown {
		result.Warnings = slices.Insert(result.Warnings, 0, "rules are known by what makes them: give the flags of the daemon that wrote them")
	}
	return result, t.err
}

// HasTable reports whether the kernel has a table of ours.
func (b *Backend) HasTable(ctx context.Context) (has bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return false, err
	}
	err = b.readTables(ctx, wire.FamilyInet, func(t wire.Table) { has = has || t.Name == tableName })
	return has, err
}

// live is a kernel's table as the walk sees it.
type live struct {
	*Backend
	ctx     context.Context
	frame   *frame
	chains  []*nft.Chain
	unknown bool  // some rules are
	err     error // the first of Find
}

// decode makes chains of the hashes of their rules.
func (t *live) decode(known map[uint64]nft.Rule) {
	for name, h := range t.frame.chains {
		c := &nft.Chain{Name: name, Base: h.base}
		for _, hash := range h.rules {
			rule, ok := known[hash]
			if !ok {
				rule = nft.Rule{Statements: []nft.Statement{nft.Unknown{Text: unknownRule}}}
				t.unknown = true
			}
			c.Rules = append(c.Rules, rule)
		}
		t.chains = append(t.chains, c)
	}
}

// knownRules are those that may be in the table, by their hashes: what r has, what it would have on another kind of
// node, and those of the lists that the kernel has.
func (b *Backend) knownRules(ctx context.Context, r *Ruleset, f *frame) (map[uint64]nft.Rule, error) {
	detectors, err := b.readDetectors(ctx)
	if err != nil {
		return nil, err
	}
	known := map[uint64]nft.Rule{}
	add := func(rules []nft.Rule) {
		for i := range rules {
			known[wire.Hash(&rules[i])] = rules[i]
		}
	}
	for c := range r.contents().chains {
		add(c.Rules)
	}
	for _, s := range r.structure.relatives(detectors) {
		for _, c := range s.chains() {
			add(c.Rules)
		}
	}
	for name := range f.chains {
		if b, ok := bucketOf(name); ok {
			add(b.rules())
		}
	}
	for _, family := range model.Families {
		for n := range uint32(maxTurns) {
			add([]nft.Rule{count(), toSlot(family, nft.Numgen{Mod: n + 1, Incremental: true})})
		}
	}
	return known, nil
}

// readDetectors are the ways to tell pods that rules of the table may have.
func (b *Backend) readDetectors(ctx context.Context) (detectors []plan.Detector, err error) {
	kind, request := wire.ListRules(wire.FamilyInet, tableName, "")
	err = b.dump(ctx, kind, request, func() { detectors = nil }, func(data []byte) error {
		sources, err := wire.DecodeSources(data)
		for _, s := range sources {
			if d := (plan.Detector{CIDR: s.CIDR, Interface: s.Interface, Wildcard: s.Wildcard}); !slices.Contains(detectors, d) {
				detectors = append(detectors, d)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read rules of table %s: %w", tableName, err)
	}
	return detectors, nil
}

// relatives are the kin of s, and those of what s would be with each of the detectors.
func (s structure) relatives(detectors []plan.Detector) (all []structure) {
	all = s.kin()
	for _, d := range detectors {
		s.detect = [2]plan.Detector{}
		for _, f := range model.Families {
			if !d.CIDR.IsValid() || model.FamilyOf(d.CIDR.Addr()) == f {
				s.detect[f] = d
			}
		}
		all = append(append(all, s), s.kin()...)
	}
	return all
}

// maxTurns is up to how many endpoints that take turns are known without the Service.
const maxTurns = 1 << 10

// kin are structures that differ from s in one thing each, but for how pods are told: a rule depends on one of these at
// most.
func (s structure) kin() (all []structure) {
	vary := func(edit func(*structure)) {
		k := s
		edit(&k)
		all = append(all, k)
	}
	vary(func(k *structure) { k.localhost = !k.localhost })
	vary(func(k *structure) { k.guard = !k.guard })
	vary(func(k *structure) { k.liberal = !k.liberal })
	vary(func(k *structure) { k.ipvs = !k.ipvs })
	vary(func(k *structure) { k.ping = [2]netip.Addr{} })
	vary(func(k *structure) { k.allLocal = [2]bool{!k.allLocal[0], !k.allLocal[1]} })
	vary(func(k *structure) { k.detect = [2]plan.Detector{} })
	for bit := range 32 {
		vary(func(k *structure) { k.mark = 1 << bit })
	}
	return all
}

// Chains are all chains.
func (t *live) Chains() []*nft.Chain { return t.chains }

// Chain finds a chain.
func (t *live) Chain(name string) *nft.Chain {
	for _, c := range t.chains {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Set finds the definition of a set.
func (t *live) Set(name string) *nft.Set {
	id, ok := setNamed(name)
	if _, has := t.frame.sets[name]; !ok || !has {
		return nil
	}
	return &sets[id]
}

// Find asks the kernel for an element.
func (t *live) Find(set string, key nft.Value) (e nft.Element, found bool) {
	id, ok := setNamed(set)
	if !ok || t.err != nil {
		return e, false
	}
	if !sets[id].Interval {
		e, found, t.err = t.find(t.ctx, id, key)
		return e, found
	}
	l, err := t.readSet(t.ctx, id)
	if t.err = err; err != nil {
		return e, false
	}
	for one := range l.elements {
		if holds(sets[id].Key, one, key) {
			e, found = *one, true
		}
	}
	t.err = l.err
	return e, found
}
