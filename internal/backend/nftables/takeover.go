package nftables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"sluice/internal/nft/wire"
)

// CleanupIPTables removes the chains that kube-proxy or mode iptables left in the tables of iptables-nft, and tells which
// there were. It needs no program. The tables of legacy iptables are not among nf_tables, and so not looked at. Chains
// that rules of others lead to stay, emptied, which is an error; and KUBE-FIREWALL stays where kubelet is at work, where
// others have rules in it, or where the kernel cannot be told to route loopback addresses no longer, which is an error too.
func (b *Backend) CleanupIPTables(ctx context.Context) (removed []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	var errs []error
	for _, family := range []uint8{wire.FamilyIPv4, wire.FamilyIPv6} {
		for _, name := range []string{"filter", "nat", "mangle"} {
			found, err := b.removeIPTable(ctx, family, name)
			if found != "" && err == nil {
				removed = append(removed, found)
			}
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// removeIPTable removes the chains of one table, and tells what there was. The kernel tells of chains that are held by
// what is no rule.
func (b *Backend) removeIPTable(ctx context.Context, family uint8, name string) (found string, err error) {
	held := map[string]bool{}
	for {
		t, err := b.readIPTable(ctx, family, name)
		if err != nil {
			return found, err
		}
		found = cmp.Or(found, t.found())
		if t.found() == "" {
			return found, nil
		}
		maps.Copy(t.held, held)
		unrouted := b.unrouteAhead(t)
		busy, err := b.tryRemove(ctx, t)
		err = errors.Join(err, unrouted)
		if len(busy) == 0 || held[busy[0]] {
			if err = cmp.Or(err, t.errHeld()); err != nil {
				err = fmt.Errorf("clean up %s: %w", t, err)
			}
			return found, err
		}
		for _, chain := range busy {
			held[chain] = true
		}
	}
}

// readIPTable finds what a proxy left in a table.
func (b *Backend) readIPTable(ctx context.Context, family uint8, name string) (*ofIPTables, error) {
	t := newOfIPTables(family, name)
	kind, request := wire.ListChains(family)
	err := b.dump(ctx, kind, request, t.forgetChains, func(data []byte) error {
		c, err := wire.DecodeChain(data)
		t.addChain(c.Table, c.Name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chains: %w", err)
	}
	if len(t.own) == 0 && !t.guard.exists {
		return t, nil
	}
	kind, request = wire.ListRules(family, t.name, "")
	err = b.dump(ctx, kind, request, t.forgetRules, func(data []byte) error {
		r, err := wire.DecodeRule(data)
		t.addRule(r, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read rules of %s: %w", t, err)
	}
	return t, nil
}

// unrouteAhead has the kernel no longer route loopback addresses if the guard is about to go: packets to them must not get
// in between. If that fails the guard stays.
func (b *Backend) unrouteAhead(t *ofIPTables) error {
	if !t.guard.goes() || b.localhost {
		return nil
	}
	err := b.unroute()
	t.guard.needed = err != nil
	return err
}

// tryRemove removes what can go, and tells as well which chains something else leads to.
func (b *Backend) tryRemove(ctx context.Context, t *ofIPTables) (busy []string, err error) {
	batch := wire.NewBatchFor(t.family, t.name)
	limit := min(loadBatch, b.socket.Limit()-batchRest)
	send := func() error {
		if batch.Empty() {
			return nil
		}
		err := b.socket.Commit(ctx, batch.Finish())
		if err == nil {
			b.ours++
		}
		busy = busyChains(err, batch)
		batch.Reset()
		return err
	}
	err = t.append(batch, func() error {
		if batch.Len() < limit {
			return nil
		}
		return send()
	})
	if err == nil {
		err = send()
	}
	return busy, err
}
