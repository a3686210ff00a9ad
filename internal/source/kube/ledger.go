package kube

import (
	"context"
	"sync"
	"time"

	"sluice/internal/model"
)

// ledger holds what is known of all kinds, and what of that the receiver was not told yet.
type ledger struct {
	start time.Time
	// bell has a ring in it while there is something to look at.
	bell chan struct{}

	mu       sync.Mutex // guards all that follows, and the stores
	services *table[model.Service]
	slices   *table[model.Slice]
	nodes    *table[model.Node]
	cidrs    *table[model.ServiceCIDR]
	problems map[Object][]string
	triggers []Trigger
	stores   []*store
}

func newLedger(kinds []*kind, link *link) *ledger {
	l := &ledger{
		start: time.Now(), bell: make(chan struct{}, 1), problems: map[Object][]string{},
		services: newTable[model.Service](), slices: newTable[model.Slice](),
		nodes: newTable[model.Node](), cidrs: newTable[model.ServiceCIDR](),
	}
	tables := map[string]objects{serviceKind: l.services, sliceKind: l.slices, nodeKind: l.nodes, serviceCIDRKind: l.cidrs}
	for _, k := range kinds {
		l.stores = append(l.stores, &store{
			kind: k, ledger: l, link: link.of(k.name), table: tables[k.name], told: map[model.Name][]string{},
		})
	}
	return l
}

func (l *ledger) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// deliver calls notify with all there is once that is known, and then with what changed, until ctx ends.
func (l *ledger) deliver(ctx context.Context, patience time.Duration, notify func(Change)) {
	if !l.settle(ctx, patience) {
		return
	}
	for first := true; ; first = false {
		if c, empty := l.take(); first || !empty {
			notify(c)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.bell:
		}
	}
}

// settle waits until all kinds are known, and for one that a plan works without no longer than patience from when all
// others are. It reports whether ctx lasted so long.
func (l *ledger) settle(ctx context.Context, patience time.Duration) bool {
	var enough <-chan time.Time
	for {
		needed, all := l.settled()
		if all {
			return true
		}
		if needed && enough == nil {
			enough = time.After(patience)
		}
		select {
		case <-ctx.Done():
			return false
		case <-enough:
			return true
		case <-l.bell:
		}
	}
}

// settled reports whether all kinds that a plan needs are known, and whether all are that will be.
func (l *ledger) settled() (needed, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	needed, all = true, true
	for _, s := range l.stores {
		needed = needed && (s.synced || s.kind.optional)
		all = all && (s.synced || (s.kind.optional && s.refused))
	}
	return needed, all
}

func (l *ledger) take() (c Change, empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c = Change{
		Delta: model.Delta{
			Services: l.services.take(), Slices: l.slices.take(),
			Nodes: byName(l.nodes.take()), ServiceCIDRs: byName(l.cidrs.take()),
		},
		Problems: l.problems, Triggers: l.triggers,
	}
	l.problems, l.triggers = map[Object][]string{}, nil
	d := &c.Delta
	return c, len(d.Services)+len(d.Slices)+len(d.Nodes)+len(d.ServiceCIDRs)+len(c.Problems)+len(c.Triggers) == 0
}
