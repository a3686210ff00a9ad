package nft

import (
	"encoding/binary"
	"net/netip"
)

// Reader takes the fields of a Value one after the other. Beyond the end it yields zeros.
type Reader struct {
	v  Value
	at int
}

// NewReader reads v from its beginning.
func NewReader(v Value) *Reader { return &Reader{v: v} }

// At is field i of v, as a Value of its own.
func (v Value) At(fields []Field, i int) Value {
	start := 0
	for _, f := range fields[:i] {
		start += f.Type.padded()
	}
	end := min(start+fields[i].Type.padded(), v.Len())
	return ValueOf(v.bytes[min(start, end):end])
}

// Addr4 takes an IPv4 address.
func (r *Reader) Addr4() netip.Addr { return netip.AddrFrom4([4]byte(r.take(4))) }

// Addr16 takes an IPv6 address.
func (r *Reader) Addr16() netip.Addr { return netip.AddrFrom16([16]byte(r.take(16))) }

// Proto takes a protocol's number.
func (r *Reader) Proto() uint8 { return r.take(4)[0] }

// Port takes a port.
func (r *Reader) Port() uint16 { return binary.BigEndian.Uint16(r.take(4)) }

// Uint32 takes a number in the machine's byte order: a class ID or an integer.
func (r *Reader) Uint32() uint32 { return binary.NativeEndian.Uint32(r.take(4)) }

func (r *Reader) take(n int) []byte {
	if r.at+n > r.v.Len() {
		r.at = r.v.Len()
		return make([]byte, n)
	}
	r.at += n
	return r.v.bytes[r.at-n : r.at]
}
