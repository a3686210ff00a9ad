package ipsets

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"sluice/internal/backend"
	"sluice/internal/iptables/rules"
	"sluice/internal/model"
)

// gauge is what others may ask of one family while an Apply is under way.
type gauge struct {
	tables Tables
	known  atomic.Pointer[[]backend.TableRules] // nil: what the kernel has is not known

	mu sync.Mutex
	// before is what earlier rules have counted, and last what this one has.
	before, last uint64
	counted      bool
}

// publish tells what an Apply has come to: rules that were written, nil for none.
func (g *gauge) publish(f model.Family, held *rules.Ruleset, d delta) {
	if held == nil {
		g.known.Store(nil)
		return
	}
	var all []backend.TableRules
	for _, name := range tableNames {
		t := backend.TableRules{Family: f, Table: name}
		for _, chain := range ownChains[name] {
			t.Held += len(held.Table(name).Chain(chain).Rules)
		}
		if d[name] != nil {
			t.Written = d[name].rules()
		}
		all = append(all, t)
	}
	g.known.Store(&all)
}

// rules is how many rules t writes.
func (t *tableDelta) rules() (n int) {
	for _, c := range t.write {
		n += len(c.Rules)
	}
	for _, e := range t.edits {
		if e.place != deletion {
			n++
		}
	}
	return n
}

// Rules tells how many rules there are in each table, of each family whose tables are known, and how many the last Apply
// wrote. See [backend.RuleCounter].
func (b *Backend) Rules() (all []backend.TableRules) {
	for _, g := range b.gauges {
		if g == nil {
			continue
		}
		if known := g.known.Load(); known != nil {
			all = append(all, *known...)
		}
	}
	return all
}

// Packets tells how many packets were dropped because connection tracking calls them invalid. See [backend.PacketCounter].
func (b *Backend) Packets(ctx context.Context) (p backend.Packets, err error) {
	if b.opts.TCPBeLiberal {
		return p, nil
	}
	var errs []error
	var sum uint64
	for _, g := range b.gauges {
		if g == nil {
			continue
		}
		n, counted, err := g.read(ctx)
		if errs, sum = append(errs, err), sum+n; counted {
			p.Invalid = &sum
		}
	}
	return p, errors.Join(errs...)
}

// read reads the counter of the first rule of KUBE-FORWARD, if it is there.
func (g *gauge) read(ctx context.Context) (n uint64, counted bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known.Load() != nil {
		var counts []uint64
		if counts, err = g.tables.Packets(ctx, "filter", chainForwarding); len(counts) > 0 {
			g.note(counts[0])
		}
	}
	return g.before + g.last, g.counted, err
}

// note takes in what the rule has counted. One that was written anew begins at 0.
func (g *gauge) note(n uint64) {
	if n < g.last {
		g.before += g.last
	}
	g.last, g.counted = n, true
}

// rewritten is called when the rule is written anew, so that it is not taken for the one before.
func (g *gauge) rewritten() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.last = g.before+g.last, 0
}
