package nft

import (
	"encoding/binary"
	"net/netip"
)

// maxValue is enough for the longest key: two IPv6 addresses, a protocol and a port.
const maxValue = 40

// Value is a key or data: fields one after the other, each padded to 4 bytes, addresses and ports in network order. It
// is comparable, and needs no memory of its own.
type Value struct {
	length uint8
	bytes  [maxValue]byte
}

// IsZero reports whether v is empty.
func (v Value) IsZero() bool { return v.length == 0 }

// Len is the number of bytes.
func (v Value) Len() int { return int(v.length) }

// AppendTo appends the bytes to b.
func (v *Value) AppendTo(b []byte) []byte { return append(b, v.bytes[:v.length]...) }

// ValueOf is the Value of raw bytes, of which there are at most 40.
func ValueOf(b []byte) (v Value) {
	v.length = uint8(copy(v.bytes[:], b))
	return v
}

// Addr appends an address.
func (v Value) Addr(a netip.Addr) Value {
	if a.Is4() {
		b := a.As4()
		return v.raw(b[:])
	}
	b := a.As16()
	return v.raw(b[:])
}

// LastOf is the last address of a prefix, where the range that is the prefix ends.
func LastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		if keep := p.Bits() - 8*i; keep < 8 {
			b[i] |= byte(0xff >> max(keep, 0))
		}
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// Proto appends a protocol's number.
func (v Value) Proto(p uint8) Value { return v.raw([]byte{p, 0, 0, 0}) }

// Port appends a port.
func (v Value) Port(p uint16) Value { return v.raw([]byte{byte(p >> 8), byte(p), 0, 0}) }

// Uint32 appends a number in the machine's byte order: a class ID or an integer.
func (v Value) Uint32(n uint32) Value { return v.raw(binary.NativeEndian.AppendUint32(nil, n)) }

func (v Value) raw(b []byte) Value {
	v.length += uint8(copy(v.bytes[v.length:], b))
	return v
}
