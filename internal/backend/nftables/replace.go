package nftables

import (
	"context"
	"strings"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// laterSuffix ends the names of the chains that are there while a table takes the place of another one.
const laterSuffix = "-later"

// isLater reports whether a chain is there for that time alone.
func isLater(chain string) bool { return strings.HasSuffix(chain, laterSuffix) }

// laterChains are the base chains once more, entered after these, to be there while the table takes the place of another
// one. A transaction replaces all chains at once, but a packet that it overtakes may meet neither the old ones nor the new
// ones: the kernel enters what came last first, so that the packet finds the new chains still empty and, a moment later,
// the old ones or their maps empty already. It would be refused, and so would all of its connection, for which the kernel
// decides once. Such a packet comes by these.
func (s *structure) laterChains() (all []nft.Chain) {
	for _, c := range s.chains() {
		if c.Base == nil {
			continue
		}
		later := *c.Base
		later.Priority++
		all = append(all, nft.Chain{
			Name: c.Name + laterSuffix, Comment: "for packets that met neither the old table nor the new one", Base: &later, Rules: c.Rules,
		})
	}
	return all
}

// appendLater adds the chains for the time of the replacement to a table that has its chains and no elements.
func appendLater(b *wire.Batch, c *contents) {
	chains := c.structure.laterChains()
	for i := range chains {
		b.AddChain(&chains[i])
		appendRules(b, &chains[i])
	}
}

// removeLater removes them again. If that fails the table holds what is wanted, and more, and is to be read again.
func (a *run) removeLater(ctx context.Context, c *contents) {
	a.batch.Reset()
	var names []string
	for _, ch := range c.structure.laterChains() {
		names = append(names, ch.Name)
	}
	appendRemoval(a.batch, names)
	if a.commit(ctx) != nil {
		a.doubt = max(a.doubt, shaken)
	}
}
