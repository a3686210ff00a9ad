package nftables

import (
	"context"

	"sluice/internal/nft/wire"
)

// Cleanup removes our table. If it guards loopback addresses, the kernel is told before not to route them.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return err
	}
	have, err := b.readFrame(ctx)
	if err != nil {
		return err
	}
	if b.localhost || have.guardsLoopback() {
		// The guard goes after what it guards: packets to loopback addresses must not get in between.
		if err := b.unroute(); err != nil {
			return err
		}
	}
	b.known = nil
	b.batch.Reset()
	b.batch.AddTable(ourTable)
	b.batch.DeleteTable()
	return b.commit(ctx)
}

// CleanupKubeProxy removes the tables of kube-proxy's nftables mode, and tells which there were.
func (b *Backend) CleanupKubeProxy(ctx context.Context) (removed []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	b.batch.Reset()
	for _, f := range []struct {
		name   string
		number uint8
	}{{"ip", wire.FamilyIPv4}, {"ip6", wire.FamilyIPv6}} {
		has := false
		if err := b.readTables(ctx, f.number, func(t wire.Table) { has = has || t.Name == kubeProxyTable }); err != nil {
			return nil, err
		}
		if has {
			b.batch.DeleteOther(f.number, kubeProxyTable)
			removed = append(removed, "table "+f.name+" "+kubeProxyTable)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if err := b.commit(ctx); err != nil {
		return nil, err
	}
	return removed, nil
}

// kubeProxyTable is the name of its tables, one in each family.
const kubeProxyTable = "kube-proxy"
