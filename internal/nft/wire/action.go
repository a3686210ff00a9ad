package wire

import "sluice/internal/nft"

// Attributes of the expressions that act.
const (
	immediateDreg = 1
	immediateData = 2

	natType     = 1
	natFamily   = 2
	natAddrMin  = 3
	natProtoMin = 5
	natDNAT     = 1 // NFT_NAT_DNAT

	masqFlags   = 1
	fullyRandom = 1 << 4 // NF_NAT_RANGE_PROTO_RANDOM_FULLY, linux/netfilter/nf_nat.h

	rejectType   = 1
	rejectCode   = 2
	unreachable  = 0 // NFT_REJECT_ICMP_UNREACH
	reset        = 1 // NFT_REJECT_TCP_RST
	unreachableX = 2 // NFT_REJECT_ICMPX_UNREACH
	icmpPort     = 3 // ICMP_PORT_UNREACH, linux/icmp.h
	icmp6Port    = 4 // ICMPV6_PORT_UNREACH, linux/icmpv6.h
	icmpxPort    = 1 // NFT_REJECT_ICMPX_PORT_UNREACH

	dynsetName     = 1
	dynsetOp       = 3
	dynsetSregKey  = 4
	dynsetSregData = 5
	dynsetTimeout  = 6
	dynsetUpdate   = 1 // NFT_DYNSET_OP_UPDATE
	dynsetDelete   = 2 // NFT_DYNSET_OP_DELETE
)

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

func (c *coder) dnatAddr(s nft.DNATAddr) {
	family := nft.ProtoIPv4
	if s.To.Is6() {
		family = nft.ProtoIPv6
	}
	c.expr("immediate", func(a *attrs) {
		a.uint32(immediateDreg, firstRegister.number())
		a.data(immediateData, s.To.AsSlice())
	})
	c.expr("nat", func(a *attrs) {
		a.uint32(natType, natDNAT)
		a.uint32(natFamily, uint32(family))
		a.uint32(natAddrMin, firstRegister.number())
	})
}

// reject takes the family's own ICMP if the rule has tested the family, as nft does.
func (c *coder) reject(s nft.Reject) {
	kind, code := uint32(unreachable), uint8(icmpPort)
	switch {
	case s.Reset:
		kind, code = reset, 0
	case c.family == nft.ProtoIPv4:
	case c.family == nft.ProtoIPv6:
		code = icmp6Port
	default:
		kind, code = unreachableX, icmpxPort
	}
	c.expr("reject", func(a *attrs) {
		a.uint32(rejectType, kind)
		a.uint8(rejectCode, code)
	})
}

// dynset keeps the data clear of the key. Program nft (1.0.6) does not if the key is longer than 16 bytes, and then writes
// over the key's end.
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
			a.uint64(dynsetTimeout, milliseconds(s.Timeout))
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
