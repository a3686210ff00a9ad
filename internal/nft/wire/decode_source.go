package wire

import (
	"bytes"
	"math/bits"
	"net/netip"

	"sluice/internal/nft"
)

// Source is where packets come from, as a rule tests it: a range of addresses, or the name of an interface.
type Source struct {
	CIDR      netip.Prefix
	Interface string
	Wildcard  bool // Interface is the beginning of names
}

// DecodeSources reads which sources a rule may test for, from a message NewRule: those of the tests that [Batch.AddRule]
// writes. Whether that is all that the rule does, its hash tells.
func DecodeSources(data []byte) (found []Source, err error) {
	_, r := body(data)
	expressions := reader{rest: r.find(ruleExpressions)}
	var last loaded
	for _, e, ok := expressions.next(); ok; _, e, ok = expressions.next() {
		expr := reader{rest: e}
		values := reader{rest: expr.lookUp(exprData)}
		switch text(expr.lookUp(exprName)) {
		case "meta":
			last = loaded{name: values.number(metaKey) == metaOf(nft.IIFName).key}
		case "payload":
			last = values.address()
		case "bitwise":
			last.bits = ones(values.constant(bitwiseMask))
		case "cmp":
			if s, ok := last.source(values.constant(cmpData)); ok {
				found = append(found, s)
			}
		}
	}
	r.bad = r.bad || expressions.bad
	return found, r.err()
}

// lookUp is find that takes nothing. What is malformed counts as absent.
func (r reader) lookUp(kind uint16) []byte { return r.find(kind) }

func (r reader) number(kind uint16) uint32 { return r.uint32(r.lookUp(kind)) }

func (r reader) constant(kind uint16) []byte {
	data := reader{rest: r.lookUp(kind)}
	return data.lookUp(dataValue)
}

// loaded is what a register has: the name of the interface, or so many leading bits of a source address.
type loaded struct {
	name bool
	size int // of the whole address, in bytes; 0: it is none
	bits int
}

// address tells what the expression payload loads.
func (r reader) address() loaded {
	for _, field := range []nft.Payload{nft.IPSaddr, nft.IP6Saddr} {
		p, length := payloadOf(field), int(r.number(payloadLen))
		if r.number(payloadBase) == p.base && r.number(payloadOffset) == p.offset && length <= p.size {
			return loaded{size: p.size, bits: bitsOfByte * length}
		}
	}
	return loaded{}
}

// ones counts bits.
func ones(mask []byte) (n int) {
	for _, b := range mask {
		n += bits.OnesCount8(b)
	}
	return n
}

// source is what a comparison of the register with a constant tests for.
func (l loaded) source(with []byte) (s Source, ok bool) {
	switch {
	case l.name:
		name := text(with)
		return Source{Interface: name, Wildcard: len(with) < ifNameSize}, name != ""
	case len(with) > l.size:
		return s, false
	}
	addr, ok := netip.AddrFromSlice(append(bytes.Clone(with), make([]byte, l.size-len(with))...))
	return Source{CIDR: netip.PrefixFrom(addr, l.bits)}, ok
}
