package nft

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"
)

// ElementString is an element as nft writes it: `10.96.0.10 . tcp . 80 comment "default/web:http" : 2:a014`.
func (s *Set) ElementString(e *Element) string { return string(s.AppendElement(nil, e)) }

// AppendElement appends ElementString to b.
func (s *Set) AppendElement(b []byte, e *Element) []byte {
	b = s.appendKey(b, e)
	if s.Counter {
		b = append(b, " counter packets "...)
		b = strconv.AppendUint(b, e.Packets, 10)
		b = append(b, " bytes 0"...)
	}
	if e.Timeout > 0 {
		b = appendDuration(append(b, " timeout "...), e.Timeout)
	}
	if e.Expires > 0 {
		b = appendDuration(append(b, " expires "...), e.Expires)
	}
	b = appendComment(b, e.Comment)
	switch {
	case s.Verdicts:
		b = appendStatement(append(b, " : "...), e.Verdict)
	case len(s.Data) > 0:
		b = AppendValue(append(b, " : "...), s.Data, e.Data)
	}
	return b
}

func (s *Set) appendKey(b []byte, e *Element) []byte {
	if e.End.IsZero() {
		return AppendValue(b, s.Key, e.Key)
	}
	for i, f := range s.Key {
		if i > 0 {
			b = append(b, " . "...)
		}
		b = appendRange(b, f.Type, e.Key.At(s.Key, i), e.End.At(s.Key, i))
	}
	return b
}

// AppendValue appends v, whose fields are given: `10.244.0.1 . 8080`. An empty key is one for all: `*`.
func AppendValue(b []byte, fields []Field, v Value) []byte {
	if v.IsZero() {
		return append(b, '*')
	}
	for i, f := range fields {
		if i > 0 {
			b = append(b, " . "...)
		}
		b = appendField(b, f.Type, v.At(fields, i))
	}
	return b
}

func appendField(b []byte, t Type, v Value) []byte {
	r := Reader{v: v}
	switch t {
	case IPv4Addr:
		return r.Addr4().AppendTo(b)
	case IPv6Addr:
		return r.Addr16().AppendTo(b)
	case InetProto:
		return appendProto(b, r.Proto())
	case InetService:
		return strconv.AppendUint(b, uint64(r.Port()), 10)
	case ClassID:
		return appendClassID(b, r.Uint32())
	case PacketMark:
		return appendMark(b, r.Uint32())
	default:
		return strconv.AppendUint(b, uint64(r.Uint32()), 10)
	}
}

// appendRange prints a range of one field as shortly as nft does: as one value, as a prefix, or by both ends.
func appendRange(b []byte, t Type, from, to Value) []byte {
	if from == to {
		return appendField(b, t, from)
	}
	if length, ok := prefixLength(from.bytes[:from.length], to.bytes[:to.length]); ok && (t == IPv4Addr || t == IPv6Addr) {
		b = append(appendField(b, t, from), '/')
		return strconv.AppendInt(b, int64(length), 10)
	}
	return appendField(append(appendField(b, t, from), '-'), t, to)
}

// prefixLength tells whether a range of addresses is that of a prefix.
func prefixLength(from, to []byte) (length int, ok bool) {
	if len(from) != len(to) {
		return 0, false
	}
	for i := range from {
		if differ := from[i] ^ to[i]; differ != 0 {
			length = 8*i + bits.LeadingZeros8(differ)
			break
		}
	}
	addr, ok := netip.AddrFromSlice(from)
	if !ok {
		return 0, false
	}
	p := netip.PrefixFrom(addr, length)
	return length, p.Masked().Addr() == addr && bytes.Equal(LastOf(p).AsSlice(), to)
}

func appendProto(b []byte, p uint8) []byte {
	switch p {
	case 6:
		return append(b, "tcp"...)
	case 17:
		return append(b, "udp"...)
	case 132:
		return append(b, "sctp"...)
	case ProtoICMP:
		return append(b, "icmp"...)
	case ProtoICMP6:
		return append(b, "ipv6-icmp"...)
	}
	return strconv.AppendUint(b, uint64(p), 10)
}

// appendClassID prints major:minor. nft reads 0:0 as it reads its own word for it, none.
func appendClassID(b []byte, n uint32) []byte {
	b = append(strconv.AppendUint(b, uint64(n>>16), 16), ':')
	return strconv.AppendUint(b, uint64(n&0xffff), 16)
}

// appendMark prints a mark with all its digits, as nft does.
func appendMark(b []byte, n uint32) []byte {
	const digits = "0123456789abcdef"
	b = append(b, "0x"...)
	for _, octet := range binary.BigEndian.AppendUint32(nil, n) {
		b = append(b, digits[octet>>4], digits[octet&15])
	}
	return b
}
