package wire

import (
	"time"

	"sluice/internal/nft"
)

// Attributes of the expressions that statements end with.
const (
	cmpSreg = 1
	cmpOp   = 2
	cmpData = 3

	immediateDreg = 1
	immediateData = 2

	natType     = 1
	natFamily   = 2
	natAddrMin  = 3
	natProtoMin = 5
	natDNAT     = 1 // NFT_NAT_DNAT

	masqFlags      = 1
	fullyRandom    = 1 << 4 // NF_NAT_RANGE_PROTO_RANDOM_FULLY, linux/netfilter/nf_nat.h
	rejectType     = 1
	rejectCode     = 2
	dynsetName     = 1
	dynsetOp       = 3
	dynsetSregKey  = 4
	dynsetSregData = 5
	dynsetTimeout  = 6
	dynsetUpdate   = 1 // NFT_DYNSET_OP_UPDATE
	dynsetDelete   = 2 // NFT_DYNSET_OP_DELETE
	fibTypeLocal   = 2 // RTN_LOCAL, linux/rtnetlink.h
	unreachable    = 0 // NFT_REJECT_ICMP_UNREACH
	unreachableX   = 2 // NFT_REJECT_ICMPX_UNREACH
	icmpPort       = 3 // ICMP_PORT_UNREACH, linux/icmp.h
	icmp6Port      = 4 // ICMPV6_PORT_UNREACH, linux/icmpv6.h
	icmpxPort      = 1 // NFT_REJECT_ICMPX_PORT_UNREACH
	cmpEqual       = 0 // NFT_CMP_EQ
	cmpUnequal     = 1 // NFT_CMP_NEQ
	firstRegister  = register(0)
	bitsOfByte     = 8
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
		c.compare(s.Not, number(fibTypeLocal))
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
	case nft.Masquerade:
		c.expr("masq", func(a *attrs) { a.uint32(masqFlags, fullyRandom) })
	case nft.Reject:
		c.reject()
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

func (c *coder) setMeta(s nft.SetMeta) {
	if s.To == nil {
		c.expr("immediate", func(a *attrs) {
			a.uint32(immediateDreg, firstRegister.number())
			a.data(immediateData, number(0))
		})
	} else {
		c.load(s.To, firstRegister)
	}
	c.expr("meta", func(a *attrs) {
		a.uint32(metaKey, metaOf(s.Meta).key)
		a.uint32(metaSreg, firstRegister.number())
	})
}

func (c *coder) vmap(s nft.Vmap) {
	c.load(s.Key, firstRegister)
	c.expr("lookup", func(a *attrs) {
		a.uint32(lookupSreg, firstRegister.number())
		a.uint32(lookupDreg, verdictRegister)
		a.text(lookupSet, s.Map)
	})
}

func (c *coder) dnat(s nft.DNAT) {
	family, port := nft.ProtoIPv4, register(1)
	if s.IPv6 {
		family, port = nft.ProtoIPv6, register(4)
	}
	c.load(s.To, firstRegister)
	c.expr("nat", func(a *attrs) {
		a.uint32(natType, natDNAT)
		a.uint32(natFamily, uint32(family))
		a.uint32(natAddrMin, firstRegister.number())
		a.uint32(natProtoMin, port.number())
	})
}

// reject takes the family's own ICMP if the rule has tested the family, as nft does.
func (c *coder) reject() {
	kind, code := uint32(unreachable), uint8(icmpPort)
	switch c.family {
	case nft.ProtoIPv4:
	case nft.ProtoIPv6:
		code = icmp6Port
	default:
		kind, code = unreachableX, icmpxPort
	}
	c.expr("reject", func(a *attrs) {
		a.uint32(rejectType, kind)
		a.uint8(rejectCode, code)
	})
}

func (c *coder) dynset(op uint32, s nft.Update) {
	data := behind(c.load(s.Key, firstRegister))
	if s.Data != nil {
		c.load(s.Data, data)
	}
	c.expr("dynset", func(a *attrs) {
		a.uint32(dynsetSregKey, firstRegister.number())
		if s.Data != nil {
			a.uint32(dynsetSregData, data.number())
		}
		a.uint32(dynsetOp, op)
		if s.Timeout > 0 {
			a.uint64(dynsetTimeout, uint64(max(s.Timeout, time.Millisecond).Milliseconds()))
		}
		a.text(dynsetName, s.Map)
	})
}

// verdict appends a verdict as data.
func (a *attrs) verdict(kind uint16, v nft.Verdict) {
	at := a.nest(kind)
	verdict := a.nest(dataCode)
	a.uint32(verdictCode, uint32(codeOf(v.Kind)))
	if v.Chain != "" {
		a.text(verdictChain, v.Chain)
	}
	a.close(verdict)
	a.close(at)
}

func codeOf(k nft.VerdictKind) int32 {
	switch k {
	case nft.Accept:
		return codeAccept
	case nft.Drop:
		return codeDrop
	case nft.Return:
		return codeReturn
	case nft.Jump:
		return codeJump
	case nft.Goto:
		return codeGoto
	}
	panicUnknown("verdict", k)
	return 0
}
