package wire

import "sluice/internal/nft"

// meta is a fact about a packet: enum nft_meta_keys, and its size in bytes.
type meta struct {
	key  uint32
	size int
}

func metaOf(m nft.Meta) meta {
	switch m {
	case nft.Priority:
		return meta{2, 4}
	case nft.Mark:
		return meta{3, 4}
	case nft.IIFName:
		return meta{6, ifNameSize}
	case nft.NFProto:
		return meta{15, 1}
	case nft.L4Proto:
		return meta{16, 1}
	}
	panicUnknown("fact", m)
	return meta{}
}

// ifNameSize is IFNAMSIZ, linux/if.h.
const ifNameSize = 16

// payload is a field of a packet's headers.
type payload struct {
	base   uint32 // enum nft_payload_bases
	offset uint32
	size   int
	header uint32 // nft's enum proto_desc_id
	field  uint32 // nft's number of the field within that header
}

func payloadOf(p nft.Payload) payload {
	const (
		network, transport       = 1, 2
		icmp, th, ip, ip6, icmp6 = 4, 11, 12, 13, 14
	)
	switch p {
	case nft.IPSaddr:
		return payload{network, 12, 4, ip, 11}
	case nft.IPDaddr:
		return payload{network, 16, 4, ip, 12}
	case nft.IP6Saddr:
		return payload{network, 8, 16, ip6, 8}
	case nft.IP6Daddr:
		return payload{network, 24, 16, ip6, 9}
	case nft.THSport:
		return payload{transport, 0, 2, th, 1}
	case nft.THDport:
		return payload{transport, 2, 2, th, 2}
	case nft.ICMPType:
		return payload{transport, 0, 1, icmp, 1}
	case nft.ICMP6Type:
		return payload{transport, 0, 1, icmp6, 1}
	}
	panicUnknown("field", p)
	return payload{}
}

// fact is a fact about a connection: enum nft_ct_keys, and its size in bytes.
type fact struct {
	key  uint32
	size int
	// original is set if it is one of either direction, and that of the first packet is meant.
	original bool
}

func factOf(c nft.CT) fact {
	switch c {
	case nft.CTState:
		return fact{0, 4, false}
	case nft.CTStatus:
		return fact{2, 4, false}
	case nft.CTOriginalDaddr:
		return fact{20, 4, true}
	case nft.CTOriginalDaddr6:
		return fact{22, 16, true}
	}
	panicUnknown("fact of a connection", c)
	return fact{}
}

// numgenWay is enum nft_ng_types.
func numgenWay(e nft.Numgen) uint32 {
	if e.Incremental {
		return 0
	}
	return 1
}

// sizeOf is the number of bytes of what an expression yields that is compared with a constant.
func sizeOf(e nft.Expr) int {
	switch e := e.(type) {
	case nft.Meta:
		return metaOf(e).size
	case nft.Payload:
		return payloadOf(e).size
	}
	return 4
}
