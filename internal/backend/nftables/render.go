package nftables

import (
	"fmt"
	"io"
	"iter"

	"sluice/internal/nft"
)

// Render writes the table as text for nft -f. Its first two lines have it take the place of one that is there.
func (r *Ruleset) Render(w io.Writer) error {
	c, refs := r.contents(), references{}
	var (
		defs   []nft.Set
		chains []nft.Chain
		byName = map[string]setID{}
	)
	for id := range c.setIDs {
		def := sized(id, &c.sizes)
		defs, byName[def.Name] = append(defs, def), id
	}
	for ch := range c.chains {
		chains = append(chains, *ch)
	}
	elements := func(set string) iter.Seq[*nft.Element] { return c.elements(byName[set], refs) }
	if _, err := fmt.Fprintf(w, "table inet %[1]s\ndelete table inet %[1]s\n", tableName); err != nil {
		return err
	}
	return ourTable.Write(w, defs, chains, elements)
}
