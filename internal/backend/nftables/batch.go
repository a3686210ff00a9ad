package nftables

import (
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// ourTable is the table without what is in it. Its comment has masks as nft prints them.
var ourTable = nft.Table{
	Name:    tableName,
	Comment: "Services: priority carries a route; & ffff:f000 is the list of endpoints, & 0:ffc the bucket, & 0:3 who is masqueraded",
}

// appendTable makes the table anew, with all that holds no elements yet. Before it was there or not, afterwards it is
// empty: to delete a table that is not there is an error, so it is made first.
func appendTable(b *wire.Batch, c *contents) {
	b.AddTable(ourTable)
	b.DeleteTable()
	b.AddTable(ourTable)
	for def := range c.sets {
		b.AddSet(def)
	}
	for ch := range c.chains {
		b.AddChain(ch)
	}
	for ch := range c.chains {
		appendRules(b, ch)
	}
}

// appendRules fills a chain with its rules. They come after all chains, to which they may lead, and before any element:
// to bind a rule to a map costs the kernel a walk through it.
func appendRules(b *wire.Batch, ch *nft.Chain) {
	for i := range ch.Rules {
		b.AddRule(ch.Name, &ch.Rules[i])
	}
}

// appendChains makes chains, or empties those that are there, and fills them with their rules.
func appendChains(b *wire.Batch, chains []nft.Chain) {
	for i := range chains {
		b.AddChain(&chains[i])
		b.FlushChain(chains[i].Name)
		appendRules(b, &chains[i])
	}
}

// appendFirst is the first transaction of a delta, if it needs no chain to be made before.
func appendFirst(b *wire.Batch, d *delta) {
	appendChains(b, d.chains)
	appendEach(&d.remove, b.DeleteElement)
	appendEach(&d.add, b.AddElement)
}

// appendLast is the last one, if there is one more.
func appendLast(b *wire.Batch, d *delta) {
	appendEach(&d.last, b.DeleteElement)
	appendRemoval(b, d.lastChains)
}

// appendRemoval removes chains with their rules. One may lead to another.
func appendRemoval(b *wire.Batch, chains []string) {
	for _, name := range chains {
		b.FlushChain(name)
	}
	for _, name := range chains {
		b.DeleteChain(name)
	}
}

func appendEach(lists *[setCount][]nft.Element, one func(*nft.Set, *nft.Element)) {
	for s := range lists {
		for i := range lists[s] {
			one(&sets[s], &lists[s][i])
		}
	}
}
