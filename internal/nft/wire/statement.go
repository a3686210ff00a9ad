package wire

import "sluice/internal/nft"

const (
	cmpSreg = 1
	cmpOp   = 2
	cmpData = 3

	cmpEqual   = 0 // NFT_CMP_EQ
	cmpUnequal = 1 // NFT_CMP_NEQ

	typeLocal = 2 // RTN_LOCAL, linux/rtnetlink.h
)

const (
	// firstRegister is where every statement begins, as nothing is kept from one to the next.
	firstRegister = register(0)

	bitsOfByte = 8
)

func (c *coder) statement(s nft.Statement) {
	switch s := s.(type) {
	case nft.Is:
		c.is(s)
	case nft.IsName:
		c.isName(s)
	case nft.HasBits:
		c.load(s.Left, firstRegister)
		c.mask(number(s.Bits), number(0), firstRegister)
		c.compare(true, number(0))
	case nft.FibIsLocal:
		c.load(s.Of, firstRegister)
		c.compare(s.Not, number(typeLocal))
	case nft.In:
		c.in(s)
	case nft.OneOf:
		c.oneOf(s)
	case nft.SetMeta:
		c.setMeta(s)
	case nft.Vmap:
		c.vmap(s)
	case nft.DNAT:
		c.dnat(s)
	case nft.DNATAddr:
		c.dnatAddr(s)
	case nft.Masquerade:
		c.expr("masq", func(a *attrs) { a.uint32(masqFlags, fullyRandom) })
	case nft.Reject:
		c.reject(s)
	case nft.Update:
		c.dynset(dynsetUpdate, s)
	case nft.Remove:
		c.dynset(dynsetDelete, nft.Update{Map: s.Map, Key: s.Key, Data: s.Data})
	case nft.Verdict:
		c.expr("immediate", func(a *attrs) {
			a.uint32(immediateDreg, verdictRegister)
			a.verdict(immediateData, s)
		})
	default:
		panicUnknown("statement", s)
	}
}

// compare tests the first register for a constant.
func (c *coder) compare(not bool, with []byte) {
	op := uint32(cmpEqual)
	if not {
		op = cmpUnequal
	}
	c.expr("cmp", func(a *attrs) {
		a.uint32(cmpSreg, firstRegister.number())
		a.uint32(cmpOp, op)
		a.data(cmpData, with)
	})
}

// is compares as nft does: of a prefix that ends between bytes it loads these bytes alone.
func (c *coder) is(s nft.Is) {
	size := sizeOf(s.Left)
	right := make([]byte, 0, size)
	right = append(s.Right.AppendTo(right), make([]byte, size)...)[:size]
	if s.Left == nft.NFProto && !s.Not {
		c.family = right[0]
	}
	p, isPayload := s.Left.(nft.Payload)
	switch {
	case s.Prefix == 0 || s.Prefix == bitsOfByte*size:
		c.load(s.Left, firstRegister)
	case isPayload && s.Prefix%bitsOfByte == 0:
		size = s.Prefix / bitsOfByte
		c.payload(payloadOf(p), size, firstRegister)
	default:
		mask := prefixMask(s.Prefix, size)
		for i := range right {
			right[i] &= mask[i]
		}
		c.load(s.Left, firstRegister)
		c.mask(mask, make([]byte, size), firstRegister)
	}
	c.compare(s.Not, right[:size])
}

// prefixMask has so many leading bits set.
func prefixMask(bits, size int) []byte {
	mask := make([]byte, size)
	for i := range min(bits, bitsOfByte*size) {
		mask[i/bitsOfByte] |= 0x80 >> (i % bitsOfByte)
	}
	return mask
}

// isName compares the whole name, zeros included, or its beginning.
func (c *coder) isName(s nft.IsName) {
	name := []byte(s.Name)
	if !s.Wildcard {
		name = append(name, make([]byte, ifNameSize)...)
	}
	c.load(s.Left, firstRegister)
	c.compare(s.Not, name[:min(len(name), ifNameSize)])
}

func (c *coder) in(s nft.In) {
	c.load(s.Left, firstRegister)
	c.expr("lookup", func(a *attrs) {
		a.uint32(lookupSreg, firstRegister.number())
		a.text(lookupSet, s.Set)
		if s.Not {
			a.uint32(lookupFlags, lookupInv)
		}
	})
}

func (c *coder) oneOf(s nft.OneOf) {
	c.load(s.Left, firstRegister)
	c.expr("lookup", func(a *attrs) {
		a.uint32(lookupSreg, firstRegister.number())
		a.text(lookupSet, anonymousName)
		a.uint32(lookupSetID, c.set)
	})
	c.set++
}
