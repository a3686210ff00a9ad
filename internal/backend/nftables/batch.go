package nftables

import (
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// ourTable is the table without what is in it.
var ourTable = nft.Table{Name: tableName}

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
		appendChain(b, ch)
	}
}

// appendChain makes a chain with its rules. They come after the chains that they lead to, and before any element:
// to bind a rule to a map costs the kernel a walk through it.
func appendChain(b *wire.Batch, ch *nft.Chain) {
	b.AddChain(ch)
	for i := range ch.Rules {
		b.AddRule(ch.Name, &ch.Rules[i])
	}
}

// appendFirst is the first transaction of a delta.
func appendFirst(b *wire.Batch, d *delta) {
	for i := range d.chains {
		b.AddChain(&d.chains[i])
		b.FlushChain(d.chains[i].Name)
		for j := range d.chains[i].Rules {
			b.AddRule(d.chains[i].Name, &d.chains[i].Rules[j])
		}
	}
	appendEach(b, &d.remove, b.DeleteElement)
	appendEach(b, &d.add, b.AddElement)
}

// appendLast is the second, if there is one.
func appendLast(b *wire.Batch, d *delta) {
	appendEach(b, &d.last, b.DeleteElement)
	for _, name := range d.lastChains {
		b.FlushChain(name)
	}
	for _, name := range d.lastChains {
		b.DeleteChain(name)
	}
}

func appendEach(b *wire.Batch, lists *[setCount][]nft.Element, one func(*nft.Set, *nft.Element)) {
	for s := range lists {
		for i := range lists[s] {
			one(&sets[s], &lists[s][i])
		}
	}
}
