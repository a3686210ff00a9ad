package nft

// Size is the number of bytes of a field on its own. Within a key or data of several fields, each is padded to a multiple
// of 4, as it is in a Value.
func (t Type) Size() int {
	switch t {
	case IPv6Addr:
		return 16
	case InetProto:
		return 1
	case InetService:
		return 2
	default:
		return 4
	}
}

// padded is the number of bytes of a field in a Value.
func (t Type) padded() int { return (t.Size() + 3) &^ 3 }

// HostOrder reports whether a field is a number in the byte order of the machine, rather than of the network.
func (t Type) HostOrder() bool { return t == ClassID || t == Integer || t == PacketMark }

// String is nft's name of the type. Integer has one in listings only.
func (t Type) String() string {
	switch t {
	case IPv4Addr:
		return "ipv4_addr"
	case IPv6Addr:
		return "ipv6_addr"
	case InetProto:
		return "inet_proto"
	case InetService:
		return "inet_service"
	case ClassID:
		return "classid"
	case PacketMark:
		return "mark"
	default:
		return "integer"
	}
}

// ByExpression reports whether a key or data is declared by expressions (typeof): if one field is, all are.
func ByExpression(fields []Field) bool {
	for _, f := range fields {
		if f.Like != nil {
			return true
		}
	}
	return false
}

// Expr is the expression that declares the field: Like, or else one of the field's type.
func (f Field) Expr() Expr {
	if f.Like != nil {
		return f.Like
	}
	switch f.Type {
	case IPv4Addr:
		return IPDaddr
	case IPv6Addr:
		return IP6Daddr
	case InetProto:
		return L4Proto
	case InetService:
		return THDport
	case ClassID:
		return Priority
	case PacketMark:
		return Mark
	default:
		return Numgen{Mod: 2} // nft heeds the type of a field's expression, not its numbers
	}
}
