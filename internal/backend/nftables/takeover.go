package nftables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sluice/internal/nft/wire"
)

// CleanupIPTables removes the chains that kube-proxy or mode iptables left in the tables of iptables-nft, and tells which
// there were. It needs no program. The tables of legacy iptables are not among nf_tables, and so not looked at. Chains
// that rules of others lead to stay, emptied, which is an error; and KUBE-FIREWALL stays where kubelet is at work, or
// where others have rules in it.
func (b *Backend) CleanupIPTables(ctx context.Context) (removed []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	var errs []error
	for _, family := range []uint8{wire.FamilyIPv4, wire.FamilyIPv6} {
		tables, err := b.readIPTables(ctx, family)
		if err != nil {
			return removed, err
		}
		for _, t := range tables {
			found := t.found()
			if found == "" {
				continue
			}
			if err := b.removeIPTables(ctx, t); err != nil {
				errs = append(errs, fmt.Errorf("clean up %s: %w", t, err))
				continue
			}
			removed = append(removed, found)
		}
	}
	return removed, errors.Join(errs...)
}

// readIPTables finds what a proxy left in the tables of a family.
func (b *Backend) readIPTables(ctx context.Context, family uint8) (tables []*ofIPTables, err error) {
	for _, name := range []string{"filter", "nat", "mangle"} {
		tables = append(tables, newOfIPTables(family, name))
	}
	kubelet := false
	kind, request := wire.ListChains(family)
	err = b.dump(ctx, kind, request, func() {}, func(data []byte) error {
		c, err := wire.DecodeChain(data)
		for _, t := range tables {
			if c.Table == t.name {
				t.addChain(c.Name)
			}
		}
		kubelet = kubelet || isKubelets(c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chains: %w", err)
	}
	for _, t := range tables {
		t.guard.kubelet = kubelet
		if len(t.own) == 0 && !t.guard.exists {
			continue
		}
		kind, request := wire.ListRules(family, t.name, "")
		err := b.dump(ctx, kind, request, t.forgetRules, func(data []byte) error {
			r, err := wire.DecodeRule(data)
			t.addRule(r, data)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read rules of %s: %w", t, err)
		}
	}
	return tables, nil
}

// removeIPTables removes the chains. The kernel tells of those that are held by what is no rule.
func (b *Backend) removeIPTables(ctx context.Context, t *ofIPTables) error {
	if t.guard.goes() && b.deps.RouteLocalnet != nil && !b.localhost {
		// The guard goes after what it guards: packets to loopback addresses must not get in between.
		if err := b.deps.RouteLocalnet(false); err != nil {
			return err
		}
	}
	for {
		busy, err := b.tryRemoveIPTables(ctx, t)
		switch {
		case len(busy) == 0 && err == nil && len(t.held) > 0:
			return fmt.Errorf("rules of others lead to these chains, which stay, emptied: %s", strings.Join(sortedNames(t.held), ", "))
		case len(busy) == 0:
			return err
		}
		for _, name := range busy {
			if t.held[name] {
				return err
			}
			t.held[name] = true
		}
	}
}

// tryRemoveIPTables tells as well which chains something else leads to.
func (b *Backend) tryRemoveIPTables(ctx context.Context, t *ofIPTables) (busy []string, err error) {
	batch := wire.NewBatchFor(t.family, t.name)
	limit := min(loadBatch, b.socket.Limit()-batchRest)
	send := func() error {
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
