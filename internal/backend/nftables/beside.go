package nftables

import (
	"cmp"
	"context"
	"fmt"

	"sluice/internal/model"
	"sluice/internal/nft/wire"
	"sluice/internal/trace"
)

// Table is a table of nf_tables, of anybody.
type Table struct {
	Family string // as nft names it
	Name   string
}

// Compare orders tables, by family and name.
func (t Table) Compare(o Table) int {
	return cmp.Or(cmp.Compare(t.Family, o.Family), cmp.Compare(t.Name, o.Name))
}

// Ours is the table of this mode.
var Ours = Table{familyNames[wire.FamilyInet], tableName}

// familyNames are the families whose chains a packet of the internet protocol may pass.
var familyNames = map[uint8]string{
	wire.FamilyInet: "inet", wire.FamilyIPv4: "ip", wire.FamilyIPv6: "ip6", wire.FamilyNetdev: "netdev",
}

// passes reports whether packets of a family pass tables of another, by the kernel's number.
func passes(f model.Family, table uint8) bool {
	own := [...]uint8{model.IPv4: wire.FamilyIPv4, model.IPv6: wire.FamilyIPv6}
	return table == wire.FamilyInet || table == wire.FamilyNetdev || table == own[f]
}

// BaseChains lists the base chains of all tables in the kernel that packets of a family may pass, save of tables that are
// dormant.
func (b *Backend) BaseChains(ctx context.Context, f model.Family) (chains map[Table][]trace.Chain, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	awake := map[Table]bool{}
	if err := b.readTables(ctx, allFamilies, func(t wire.Table) { awake[Table{familyNames[t.Family], t.Name}] = !t.Dormant }); err != nil {
		return nil, err
	}
	kind, request := wire.ListChains(allFamilies)
	err = b.dump(ctx, kind, request, func() { chains = map[Table][]trace.Chain{} }, func(data []byte) error {
		c, err := wire.DecodeChain(data)
		if t := (Table{familyNames[c.Family], c.Table}); err == nil && c.Base != nil && passes(f, c.Family) && awake[t] {
			chains[t] = append(chains[t], chainOf(t, c))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chains: %w", err)
	}
	return chains, nil
}

// allFamilies is the number that stands for them.
const allFamilies = 0

// chainOf describes a base chain. Nothing jumps to one, so what uses it is its rules.
func chainOf(t Table, c wire.Chain) trace.Chain {
	policy := "accept"
	if c.Policy == 0 {
		policy = "drop"
	}
	return trace.Chain{Table: t.Family + " " + t.Name, Name: c.Name, Hook: hookOf(c), Policy: policy, Rules: int(c.Uses)}
}

// hookOf is the hook of a base chain. A device's own are told as those beside which they are: a packet that comes by one
// comes by the other.
func hookOf(c wire.Chain) string {
	const ingress = 5 // of family inet
	switch {
	case c.Family == wire.FamilyNetdev && c.Base.Hook != 0:
		return "postrouting"
	case c.Family == wire.FamilyNetdev, c.Base.Hook == ingress:
		return "prerouting"
	}
	return c.Base.Hook.String()
}
