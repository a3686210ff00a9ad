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

// Addr is v and an address.
func (v Value) Addr(a netip.Addr) Value { v.AppendAddr(a); return v }

// Proto is v and a protocol's number.
func (v Value) Proto(p uint8) Value { v.AppendProto(p); return v }

// Port is v and a port.
func (v Value) Port(p uint16) Value { v.AppendPort(p); return v }

// Uint32 is v and a number in the machine's byte order: a class ID or an integer.
func (v Value) Uint32(n uint32) Value { v.AppendUint32(n); return v }

// AppendAddr is Addr in place, as are the other ones: to copy a Value for each field costs several times as much, which
// counts where there are hundreds of thousands.
func (v *Value) AppendAddr(a netip.Addr) {
	if a.Is4() {
		v.word(a.As4())
		return
	}
	b := a.As16()
	v.length += uint8(copy(v.bytes[v.length:], b[:]))
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

// AppendProto is Proto in place.
func (v *Value) AppendProto(p uint8) { v.word([4]byte{p}) }

// AppendPort is Port in place.
func (v *Value) AppendPort(p uint16) { v.word([4]byte{byte(p >> 8), byte(p)}) }

// AppendUint32 is Uint32 in place.
func (v *Value) AppendUint32(n uint32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], n)
	v.word(b)
}

// word appends four bytes, as most fields have.
func (v *Value) word(b [4]byte) { v.length += uint8(copy(v.bytes[v.length:], b[:])) }
