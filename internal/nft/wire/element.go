package wire

import (
	"encoding/binary"
	"time"

	"sluice/internal/nft"
)

// maxList bounds the elements of one message: the length of their attribute has 16 bits, and what goes beyond is lost
// without an error. The longest element is far shorter than what is left.
const maxList = 60_000

const elementsOf = "elements of"

// list is the message of elements that is open: elements of one set and one operation share it.
type list struct {
	set           *nft.Set // nil: none
	kind          uint16
	elements      int // where the attribute begins
	keyLen        int
	dataLen       int
	rangesByField bool // KEY and KEY_END
	rangesByEnds  bool // an element for the start, one for behind the end
}

// AddElement adds an element. The kernel takes one that is there already if it is the same, and else refuses (EEXIST).
func (b *Batch) AddElement(s *nft.Set, e *nft.Element) {
	b.openList(s, NewElement, flagCreate)
	at := b.buf.nest(listElem)
	if e.Timeout > 0 {
		b.buf.uint64(elemTimeout, milliseconds(e.Timeout))
	}
	if e.Expires > 0 {
		b.buf.uint64(elemExpiration, milliseconds(e.Expires))
	}
	b.key(e)
	switch {
	case s.Verdicts:
		b.buf.verdict(elemData, e.Verdict)
	case len(s.Data) > 0:
		b.buf.value(elemData, &e.Data, b.list.dataLen)
	}
	b.elementUserdata(e)
	if s.Counter && e.Packets > 0 {
		b.counter(e.Packets)
	}
	b.buf.close(at)
	b.behindEnd(e)
}

func (b *Batch) elementUserdata(e *nft.Element) {
	open := b.list.rangesByEnds && b.isTop(e)
	if e.Comment == "" && !open {
		return
	}
	at := b.buf.open(elemUserdata)
	if e.Comment != "" {
		b.buf.udataText(udataComment, nft.CleanComment(e.Comment))
	}
	if open {
		b.buf.udataUint32(udataElemFlags, elemOpenInterval)
	}
	b.buf.close(at)
}

// DeleteElement deletes an element by its key. The kernel refuses if it is not there (ENOENT).
func (b *Batch) DeleteElement(s *nft.Set, e *nft.Element) {
	b.openList(s, DelElement, 0)
	at := b.buf.nest(listElem)
	b.key(e)
	b.buf.close(at)
	b.behindEnd(e)
}

func (b *Batch) openList(s *nft.Set, kind, flags uint16) {
	if l := &b.list; l.set == s && l.kind == kind && len(b.buf)-l.elements < maxList {
		return
	}
	b.start(kind, flags, subject{elementsOf, s.Name})
	b.buf.text(listTable, b.table)
	b.buf.text(listSet, s.Name)
	b.list = list{
		set: s, kind: kind,
		elements:      b.buf.nest(listElements),
		keyLen:        keyLen(s.Key),
		dataLen:       keyLen(s.Data),
		rangesByField: s.Interval && len(s.Key) > 1,
		rangesByEnds:  s.Interval && len(s.Key) == 1,
	}
}

func (b *Batch) closeList() {
	if b.list.set == nil {
		return
	}
	b.buf.close(b.list.elements)
	b.endMessage()
	b.list = list{}
}

func (b *Batch) key(e *nft.Element) {
	b.buf.key(&e.Key, b.list.keyLen)
	if !b.list.rangesByField || e.Key.IsZero() {
		return
	}
	b.buf.value(elemKeyEnd, lastKey(e), b.list.keyLen)
}

// key appends a key of n bytes, or that the element is the one for all other keys.
func (a *attrs) key(key *nft.Value, n int) {
	if key.IsZero() {
		a.uint32(elemFlags, elemCatchAll)
		return
	}
	a.value(elemKey, key, n)
}

// behindEnd appends the first key that is no longer in the range, flagged as its end. At the top of the space there is
// none.
func (b *Batch) behindEnd(e *nft.Element) {
	if !b.list.rangesByEnds || e.Key.IsZero() || b.isTop(e) {
		return
	}
	at := b.buf.nest(listElem)
	b.buf.uint32(elemFlags, elemIntervalEnd)
	behind := after(*lastKey(e), b.list.keyLen)
	b.buf.value(elemKey, &behind, b.list.keyLen)
	b.buf.close(at)
}

// lastKey is the last key of a range.
func lastKey(e *nft.Element) *nft.Value {
	if e.End.IsZero() {
		return &e.Key
	}
	return &e.End
}

// isTop reports whether a range has all keys up to the greatest.
func (b *Batch) isTop(e *nft.Element) bool {
	last := lastKey(e)
	return *last == top(*last, b.list.keyLen)
}

// value appends a key or data of n bytes. A field that stands alone loses its padding.
func (a *attrs) value(kind uint16, v *nft.Value, n int) {
	a.header(kind|nested, attrHeader+(n+3)&^3)
	a.header(dataValue, n)
	start := len(*a)
	*a = v.AppendTo(*a)
	for len(*a) < start+n {
		*a = append(*a, 0)
	}
	*a = (*a)[:start+n]
	a.align()
}

// counter appends what a counter has counted. Bytes are not kept.
func (b *Batch) counter(packets uint64) {
	at := b.buf.nest(elemExpr)
	b.buf.text(exprName, "counter")
	data := b.buf.nest(exprData)
	b.buf.uint64(counterBytes, 0)
	b.buf.uint64(counterPackets, packets)
	b.buf.close(data)
	b.buf.close(at)
}

// milliseconds is a time as the kernel wants it; the shortest is 1, because 0 is none.
func milliseconds(d time.Duration) uint64 { return uint64(max(d.Milliseconds(), 1)) }

// number is a 32-bit constant in the byte order of the machine, as registers hold it.
func number(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
