package wire

import (
	"iter"

	"sluice/internal/nft"
)

// Elements is a message about elements of one set.
type Elements struct {
	Family     uint8
	Table, Set string
	list       []byte
	offset     int // of list in the message's data
}

// DecodeElements reads the head of a message NewElement or DelElement; All reads its elements. What Elements holds is
// part of data.
func DecodeElements(data []byte) (e Elements, err error) {
	family, r := body(data)
	e.Family = family
	for kind, v, ok := r.next(); ok; kind, v, ok = r.next() {
		switch kind {
		case listTable:
			e.Table = text(v)
		case listSet:
			e.Set = text(v)
		case listElements:
			e.list = v
			e.offset = len(data) - len(r.rest) - len(v) - padding(len(v))
		}
	}
	return e, r.err()
}

func padding(n int) int { return -n & 3 }

// Element is an element as the kernel tells of it.
type Element struct {
	nft.Element
	// Behind says that the key is the first one behind a range, which another element begins: so are the ranges of a
	// set of one field, see [Ranges].
	Behind bool
}

// All yields the elements. The error ends it. The element is the same variable each time.
func (e Elements) All() iter.Seq2[*Element, error] {
	return func(yield func(*Element, error) bool) {
		r := reader{rest: e.list}
		var element Element
		for _, v, ok := r.next(); ok; _, v, ok = r.next() {
			if err := element.decode(v); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&element, nil) {
				return
			}
		}
		if r.bad {
			yield(nil, ErrMalformed)
		}
	}
}

// at is the element whose attribute has the byte at an offset of the message's data.
func (e Elements) at(offset int) (element Element, ok bool) {
	r := reader{rest: e.list}
	for _, v, ok := r.next(); ok; _, v, ok = r.next() {
		if end := e.offset + len(e.list) - len(r.rest); offset >= e.offset && offset < end {
			err := element.decode(v)
			return element, err == nil
		}
	}
	return element, false
}

func (e *Element) decode(attributes []byte) error {
	*e = Element{}
	r := reader{rest: attributes}
	for kind, v, ok := r.next(); ok; kind, v, ok = r.next() {
		switch kind {
		case elemKey:
			e.Key = r.value(v)
		case elemKeyEnd:
			e.End = r.value(v)
		case elemData:
			e.Data = r.value(v)
			e.Verdict = r.verdict(v)
		case elemFlags:
			e.Behind = r.uint32(v)&elemIntervalEnd != 0
		case elemTimeout:
			e.Timeout = duration(r.uint64(v))
		case elemExpiration:
			e.Expires = duration(r.uint64(v))
		case elemUserdata:
			e.Comment = comment(v, udataComment)
		case elemExpr:
			e.Packets = r.packets(v)
		}
	}
	if e.End == e.Key {
		e.End = nft.Value{}
	}
	return r.err()
}

// value reads a key or data, and pads it as package nft does; verdicts yield none.
func (r *reader) value(nested []byte) (v nft.Value) {
	in := reader{rest: nested}
	b := in.find(dataValue)
	r.bad = r.bad || in.bad
	if pad := padding(len(b)); pad > 0 {
		var padded [4]byte // only a field that stands alone is short
		if len(b) > len(padded) {
			r.bad = true
			return v
		}
		return nft.ValueOf(padded[:copy(padded[:], b)+pad])
	}
	return nft.ValueOf(b)
}

// packets is what a counter has counted.
func (r *reader) packets(nested []byte) (n uint64) {
	if !r.isCounter(nested) {
		return 0
	}
	in := reader{rest: nested}
	data := reader{rest: in.find(exprData)}
	if v := data.find(counterPackets); v != nil {
		n = data.uint64(v)
	}
	r.bad = r.bad || in.bad || data.bad
	return n
}
