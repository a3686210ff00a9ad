package iptables

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"sluice/internal/backend"
	"sluice/internal/model"
)

// gauge is what others may ask of one family's tables while an Apply is under way.
type gauge struct {
	tables Tables
	// known is from the end of the last Apply; nil: what the kernel has is not known.
	known atomic.Pointer[known]
	// rewrites is twice how often the chains with counters were written, which begin at 0 again then, and one more while
	// they are.
	rewrites atomic.Uint64

	counts [meters]count
}

// known is what there is to tell of one family's tables.
type known struct {
	tally  tally
	places [meters]place
}

// meter is something that rules count.
type meter int

const (
	meterInvalid meter = iota
	meterLocalhost
	meters
)

// meterChain is where a meter's rule is.
type meterChain struct {
	table Table
	chain string
	rule  func(model.Family) string
}

// meterChains are hardly ever written anew.
var meterChains = [meters]meterChain{
	meterInvalid:   {Filter, chainForwarding, invalidRule},
	meterLocalhost: {Nat, chainMasquerade, localhostRule},
}

// place is where a meter's rule is in its chain, which has so many rules; not ok: there is none.
type place struct {
	index, of int
	ok        bool
}

func (m meter) place(f model.Family, have contents) place {
	c := meterChains[m]
	all := lines(have[c.table][c.chain])
	want := strings.TrimSuffix(c.rule(f), "\n")
	at := slices.IndexFunc(all, func(l string) bool { return sameLine(l, want) })
	return place{at, len(all), at >= 0}
}

// publish tells what an Apply has come to.
func (s *side) publish(f model.Family) {
	if !s.known {
		return // forget has told
	}
	k := known{tally: s.tally}
	for m := range meters {
		k.places[m] = m.place(f, s.shadow)
	}
	s.gauge.known.Store(&k)
}

// writing lets it be known that the kernel is given d, if that has counters in it. A failure leaves them as they were.
func (g *gauge) writing(d delta, write func() error) error {
	if !slices.ContainsFunc(meterChains[:], func(c meterChain) bool { return d[c.table].writes(c.chain) }) {
		return write()
	}
	before := g.rewrites.Add(1) - 1
	err := write()
	if err != nil {
		g.rewrites.Store(before)
	} else {
		g.rewrites.Store(before + 2)
	}
	return err
}

// writes reports whether the rules of a chain are put there anew.
func (d *tableDelta) writes(name string) bool {
	return slices.ContainsFunc(d.write, func(c chain) bool { return c.name == name })
}

// count is a counter that does not fall where that of a rule begins at 0 again.
type count struct {
	before, last uint64 // what earlier rules have had, and this one
	rewrites     uint64
	known        bool
}

func (c *count) note(n, rewrites uint64) {
	if rewrites != c.rewrites || n < c.last { // by us, or by others
		c.before += c.last
	}
	c.last, c.rewrites, c.known = n, rewrites, true
}

// read reads one meter. Nothing comes of it while the chain is being written.
func (g *gauge) read(ctx context.Context, m meter) error {
	rewrites, k := g.rewrites.Load(), g.known.Load()
	if rewrites%2 != 0 || k == nil || !k.places[m].ok {
		return nil
	}
	at := k.places[m]
	counts, err := g.tables.Packets(ctx, meterChains[m].table, meterChains[m].chain)
	if err != nil {
		return err
	}
	if g.rewrites.Load() == rewrites && len(counts) == at.of {
		g.counts[m].note(counts[at.index], rewrites)
	}
	return nil
}

// Packets tells what rules have counted. See [backend.PacketCounter].
func (b *Backend) Packets(ctx context.Context) (backend.Packets, error) {
	b.counting.Lock()
	defer b.counting.Unlock()
	var total [meters]*uint64
	var errs []error
	for _, g := range b.gauges {
		if g == nil {
			continue
		}
		for m := range meters {
			errs = append(errs, g.read(ctx, m))
			total[m] = g.counts[m].add(total[m])
		}
	}
	return backend.Packets{Invalid: total[meterInvalid], Localhost: total[meterLocalhost]}, errors.Join(errs...)
}

// add adds it to a sum; nil: nobody has counted.
func (c *count) add(sum *uint64) *uint64 {
	if !c.known {
		return sum
	}
	n := c.before + c.last
	if sum != nil {
		n += *sum
	}
	return &n
}
