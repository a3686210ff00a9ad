package wire

import "encoding/binary"

const attrHeader = 4

// attrs is a buffer of netlink attributes that grows. Its methods append.
type attrs []byte

// align pads to a multiple of 4.
func (a *attrs) align() {
	for len(*a)%4 != 0 {
		*a = append(*a, 0)
	}
}

// open begins an attribute of yet unknown length and returns where; close ends it.
func (a *attrs) open(kind uint16) (at int) {
	at = len(*a)
	*a = append(*a, 0, 0, byte(kind), byte(kind>>8))
	binary.NativeEndian.PutUint16((*a)[at+2:], kind)
	return at
}

// nest is open for an attribute that holds others.
func (a *attrs) nest(kind uint16) (at int) { return a.open(kind | nested) }

func (a *attrs) close(at int) {
	binary.NativeEndian.PutUint16((*a)[at:], uint16(len(*a)-at))
	a.align()
}

// header begins an attribute of known length.
func (a *attrs) header(kind uint16, length int) {
	*a = binary.NativeEndian.AppendUint16(*a, uint16(attrHeader+length))
	*a = binary.NativeEndian.AppendUint16(*a, kind)
}

func (a *attrs) bytes(kind uint16, b []byte) {
	a.header(kind, len(b))
	*a = append(*a, b...)
	a.align()
}

// text appends a string with the zero at its end that the kernel wants.
func (a *attrs) text(kind uint16, s string) {
	a.header(kind, len(s)+1)
	*a = append(append(*a, s...), 0)
	a.align()
}

func (a *attrs) uint8(kind uint16, n uint8) {
	a.header(kind, 1)
	*a = append(*a, n, 0, 0, 0)
}

func (a *attrs) uint32(kind uint16, n uint32) {
	a.header(kind, 4)
	*a = binary.BigEndian.AppendUint32(*a, n)
}

func (a *attrs) uint64(kind uint16, n uint64) {
	a.header(kind, 8)
	*a = binary.BigEndian.AppendUint64(*a, n)
}

// data appends a constant as struct nft_data_attributes has it.
func (a *attrs) data(kind uint16, b []byte) {
	at := a.nest(kind)
	a.bytes(dataValue, b)
	a.close(at)
}
