package wire

import (
	"fmt"

	"sluice/internal/nft"
)

// enum nft_expr_attributes, and for each kind of expression its own.
const (
	exprName = 1
	exprData = 2

	metaDreg = 1
	metaKey  = 2
	metaSreg = 3

	payloadDreg   = 1
	payloadBase   = 2
	payloadOffset = 3
	payloadLen    = 4

	ctDreg      = 1
	ctKey       = 2
	ctDirection = 3
	original    = 0 // IP_CT_DIR_ORIGINAL

	fibDreg   = 1
	fibResult = 2
	fibFlags  = 3

	numgenDreg    = 1
	numgenModulus = 2
	numgenType    = 3
	numgenOffset  = 4

	bitwiseSreg = 1
	bitwiseDreg = 2
	bitwiseLen  = 3
	bitwiseMask = 4
	bitwiseXor  = 5
	bitwiseOp   = 6

	lookupSet   = 1
	lookupSreg  = 2
	lookupDreg  = 3
	lookupSetID = 4
	lookupFlags = 5
	lookupInv   = 1 // NFT_LOOKUP_F_INV

	counterBytes   = 1
	counterPackets = 2
)

// coder appends the expressions of one rule.
type coder struct {
	*attrs
	set    uint32 // number of the next anonymous set
	family uint8  // of the packets that get this far, if the rule has tested it
}

// expr appends one expression, whose attributes are by f.
func (c *coder) expr(name string, f func(a *attrs)) {
	at := c.nest(listElem)
	c.text(exprName, name)
	data := c.nest(exprData)
	f(c.attrs)
	c.close(data)
	c.close(at)
}

// load appends what puts an expression into registers from r on, and returns how many words it takes there. A lookup is
// taken for one word: who knows of more does not ask.
func (c *coder) load(e nft.Expr, r register) (words int) {
	switch e := e.(type) {
	case nft.Meta:
		m := metaOf(e)
		c.expr("meta", func(a *attrs) {
			a.uint32(metaKey, m.key)
			a.uint32(metaDreg, r.number())
		})
		return wordsOf(m.size)
	case nft.Payload:
		p := payloadOf(e)
		c.payload(p, p.size, r)
		return wordsOf(p.size)
	case nft.CT:
		return c.fact(factOf(e), r)
	case nft.Fib:
		c.fib(e, r)
	case nft.Numgen:
		c.expr("numgen", func(a *attrs) {
			a.uint32(numgenDreg, r.number())
			a.uint32(numgenModulus, e.Mod)
			a.uint32(numgenType, numgenWay(e))
			a.uint32(numgenOffset, 0)
		})
	case nft.Bits:
		c.load(e.Of, r)
		c.bits(e, r)
	case nft.Concat:
		for _, part := range e {
			words += c.load(part, r+register(words))
		}
		return words
	case nft.Lookup:
		c.lookup(e, r)
	default:
		panicUnknown("expression", e)
	}
	return 1
}

// payload loads the first n bytes of a field.
func (c *coder) payload(p payload, n int, r register) {
	c.expr("payload", func(a *attrs) {
		a.uint32(payloadDreg, r.number())
		a.uint32(payloadBase, p.base)
		a.uint32(payloadOffset, p.offset)
		a.uint32(payloadLen, uint32(n))
	})
}

// fact loads a fact about the connection.
func (c *coder) fact(f fact, r register) (words int) {
	c.expr("ct", func(a *attrs) {
		a.uint32(ctKey, f.key)
		a.uint32(ctDreg, r.number())
		if f.original {
			a.uint8(ctDirection, original)
		}
	})
	return wordsOf(f.size)
}

func (c *coder) fib(e nft.Fib, r register) {
	const addrType = 3 // NFT_FIB_RESULT_ADDRTYPE
	flags := uint32(1) // NFTA_FIB_F_SADDR
	if e == nft.FibDaddr {
		flags = 2 // NFTA_FIB_F_DADDR
	}
	c.expr("fib", func(a *attrs) {
		a.uint32(fibFlags, flags)
		a.uint32(fibResult, addrType)
		a.uint32(fibDreg, r.number())
	})
}

// bits writes every operation as (x & mask) ^ xor, which is all that old kernels have.
func (c *coder) bits(e nft.Bits, r register) {
	mask, xor := e.By, uint32(0)
	switch e.Op {
	case nft.Or:
		mask, xor = ^e.By, e.By
	case nft.Xor:
		mask, xor = ^uint32(0), e.By
	}
	c.mask(number(mask), number(xor), r)
}

func (c *coder) mask(mask, xor []byte, r register) {
	c.expr("bitwise", func(a *attrs) {
		a.uint32(bitwiseSreg, r.number())
		a.uint32(bitwiseDreg, r.number())
		a.uint32(bitwiseOp, 0) // NFT_BITWISE_BOOL
		a.uint32(bitwiseLen, uint32(len(mask)))
		a.data(bitwiseMask, mask)
		a.data(bitwiseXor, xor)
	})
}

// lookup loads what a map has at a key.
func (c *coder) lookup(e nft.Lookup, r register) {
	c.load(e.Key, r)
	c.expr("lookup", func(a *attrs) {
		a.uint32(lookupSreg, r.number())
		a.uint32(lookupDreg, r.number())
		a.text(lookupSet, e.Map)
	})
}

func panicUnknown(what string, e any) { panic(fmt.Sprintf("wire: unknown %s %T(%v)", what, e, e)) }
