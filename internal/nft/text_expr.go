package nft

import (
	"fmt"
	"strconv"
)

// appendExpr appends an expression as nft writes it.
func appendExpr(b []byte, e Expr) []byte {
	switch e := e.(type) {
	case Meta:
		// nft leaves the word meta out where a name can be nothing else.
		if e == IIFName {
			return append(b, e...)
		}
		return append(append(b, "meta "...), e...)
	case Payload:
		return append(b, e...)
	case CT:
		return append(append(b, "ct "...), e...)
	case Fib:
		return append(append(append(b, "fib "...), e...), " type"...)
	case Numgen:
		return e.append(b)
	case Bits:
		b = append(appendExpr(b, e.Of), " "+string(e.Op)+" "...)
		return appendNumber(b, e.Of, e.By)
	case Concat:
		return e.append(b)
	case Lookup:
		return append(append(appendExpr(b, e.Key), " map @"...), e.Map...)
	default:
		panic(fmt.Sprintf("nft: no text for expression %T", e))
	}
}

func (e Numgen) append(b []byte) []byte {
	way := "random"
	if e.Incremental {
		way = "inc"
	}
	return strconv.AppendUint(append(b, "numgen "+way+" mod "...), uint64(e.Mod), 10)
}

func (e Concat) append(b []byte) []byte {
	for i, part := range e {
		if i > 0 {
			b = append(b, " . "...)
		}
		b = appendExpr(b, part)
	}
	return b
}

// appendNumber prints a 32-bit constant that an expression is combined or compared with.
func appendNumber(b []byte, with Expr, n uint32) []byte {
	if m, ok := whole(with).(Meta); ok && m == Priority {
		return appendClassID(b, n)
	}
	return appendMark(b, n)
}

// whole is what an expression takes its bits from.
func whole(e Expr) Expr {
	for {
		b, ok := e.(Bits)
		if !ok {
			return e
		}
		e = b.Of
	}
}

// appendConstant prints a constant that an expression is compared with.
func appendConstant(b []byte, with Expr, v Value) []byte {
	r := Reader{v: v}
	switch with {
	case NFProto:
		return appendFamily(b, r.Proto())
	case ICMPType, ICMP6Type:
		return appendMessage(b, r.Proto())
	}
	if t, ok := typeOf(with); ok {
		return appendField(b, t, v)
	}
	return appendNumber(b, with, r.Uint32())
}

// typeOf is the type of what an expression yields, if it has one; marks have none.
func typeOf(e Expr) (t Type, ok bool) {
	switch e {
	case IPSaddr, IPDaddr:
		return IPv4Addr, true
	case IP6Saddr, IP6Daddr:
		return IPv6Addr, true
	case THSport, THDport:
		return InetService, true
	case L4Proto:
		return InetProto, true
	}
	return 0, false
}

// appendMessage prints the number of an ICMP message.
func appendMessage(b []byte, n uint8) []byte {
	if n == ICMPEchoRequest || n == ICMP6EchoRequest {
		return append(b, "echo-request"...)
	}
	return strconv.AppendUint(b, uint64(n), 10)
}

func appendFamily(b []byte, p uint8) []byte {
	switch p {
	case ProtoIPv4:
		return append(b, "ipv4"...)
	case ProtoIPv6:
		return append(b, "ipv6"...)
	}
	return strconv.AppendUint(b, uint64(p), 10)
}
