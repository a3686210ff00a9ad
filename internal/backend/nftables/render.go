package nftables

import (
	"io"
	"iter"

	"sluice/internal/nft"
)

// Render writes the table as text for nft -f, as it comes out in a kernel that has none. With "delete table inet sluice"
// before it, it takes the place of one that is there.
func (r *Ruleset) Render(w io.Writer) error {
	c, refs := r.contents(), references{}
	var (
		defs   []nft.Set
		chains []nft.Chain
		byName = map[string]setID{}
	)
	for _, id := range shown {
		def := sized(id, &c.sizes)
		defs, byName[def.Name] = append(defs, def), id
	}
	for ch := range c.chains {
		chains = append(chains, *ch)
	}
	elements := func(set string) iter.Seq[*nft.Element] { return c.elements(byName[set], refs) }
	return ourTable.Write(w, defs, chains, elements)
}
