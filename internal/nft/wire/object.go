package wire

import "sluice/internal/nft"

// AddTable makes the table, unless it is there.
func (b *Batch) AddTable(t nft.Table) {
	b.start(NewTable, flagCreate, subject{"table", t.Name})
	b.buf.text(tableName, t.Name)
	b.buf.uint32(tableFlags, 0)
	b.comment(tableUserdata, udataComment, t.Comment)
	b.endMessage()
}

// DeleteTable deletes the table and all that is in it.
func (b *Batch) DeleteTable() {
	b.start(DelTable, 0, subject{"table", b.table})
	b.buf.text(tableName, b.table)
	b.endMessage()
}

// DeleteOther deletes another table than the batch is on, of any family.
func (b *Batch) DeleteOther(family uint8, table string) {
	b.start(DelTable, 0, subject{"table", table})
	b.buf[len(b.buf)-4] = family // start has written that of ours, and three bytes more
	b.buf.text(tableName, table)
	b.endMessage()
}

// AddChain makes a chain, without its rules.
func (b *Batch) AddChain(c *nft.Chain) {
	b.start(NewChain, flagCreate, subject{"chain", c.Name})
	b.buf.text(chainTable, b.table)
	b.buf.text(chainName, c.Name)
	if c.Base != nil {
		b.base(c.Base)
	}
	b.comment(chainUserdata, udataComment, c.Comment)
	b.endMessage()
}

func (b *Batch) base(base *nft.Base) {
	b.buf.text(chainType, string(base.Type))
	b.buf.uint32(chainPolicy, policyAccept)
	at := b.buf.nest(chainHook)
	b.buf.uint32(hookNumber, uint32(base.Hook))
	b.buf.uint32(hookPriority, uint32(base.Priority))
	b.buf.close(at)
}

// DeleteChain deletes a chain, which must have no rules and no references.
func (b *Batch) DeleteChain(name string) {
	b.start(DelChain, 0, subject{"chain", name})
	b.buf.text(chainTable, b.table)
	b.buf.text(chainName, name)
	b.endMessage()
}

// FlushChain deletes all rules of a chain.
func (b *Batch) FlushChain(name string) {
	b.start(DelRule, 0, subject{"rules of chain", name})
	b.buf.text(ruleTable, b.table)
	b.buf.text(ruleChain, name)
	b.endMessage()
}
