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
		network, transport = 1, 2
		th, ip, ip6        = 11, 12, 13
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
	}
	panicUnknown("field", p)
	return payload{}
}

// ctOf is a fact about a connection: enum nft_ct_keys.
func ctOf(c nft.CT) uint32 {
	switch c {
	case nft.CTState:
		return 0
	case nft.CTStatus:
		return 2
	}
	panicUnknown("fact of a connection", c)
	return 0
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
