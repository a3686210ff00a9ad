package wire

import (
	"encoding/binary"
	"slices"

	"sluice/internal/nft"
)

const (
	messageHeader = 16 // struct nlmsghdr, linux/netlink.h
	familyHeader  = 4  // struct nfgenmsg, linux/netfilter/nfnetlink.h
)

// Batch is a transaction under construction, on one table. Messages take effect in the order in which they
// are appended. Every method appends; Finish yields the bytes. A Batch may be used again after Reset.
//
// No message asks for an acknowledgement: errors are told without, and who wants to know of success asks for one with
// the last message.
type Batch struct {
	family   uint8
	table    string
	buf      attrs
	messages []message
	sets     uint32 // sets made so far, which have numbers within the batch
	list     list   // the message of elements that is open, if any
}

// message is one message of a batch.
type message struct {
	start   int
	subject subject
}

// NewBatch begins a batch on a table of family inet. Sequence numbers begin with 0, that of the batch begin.
func NewBatch(table string) *Batch { return NewBatchFor(FamilyInet, table) }

// NewBatchFor is NewBatch for a table of any family.
func NewBatchFor(family uint8, table string) *Batch {
	b := &Batch{family: family, table: table}
	b.begin()
	return b
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.buf, b.messages, b.sets, b.list = b.buf[:0], b.messages[:0], 0, list{}
	b.begin()
}

func (b *Batch) begin() {
	b.batchMessage(batchBegin, "batch begin")
	b.endMessage()
}

// Empty reports whether nothing has been appended.
func (b *Batch) Empty() bool { return len(b.messages) == 1 }

// Len is the number of bytes so far.
func (b *Batch) Len() int { return len(b.buf) }

// Finish ends the batch and returns it. The bytes are the Batch's own.
func (b *Batch) Finish() []byte {
	b.closeList()
	b.batchMessage(batchEnd, "batch end")
	b.endMessage()
	return b.buf
}

func (b *Batch) batchMessage(kind uint16, name string) {
	b.header(kind, 0, subject{what: name})
	b.buf = append(b.buf, 0, 0)
	b.buf = binary.BigEndian.AppendUint16(b.buf, subsystem>>8)
}

// start begins a message about the table.
func (b *Batch) start(kind, flags uint16, s subject) {
	b.closeList()
	b.header(kind, flags, s)
	b.buf = append(b.buf, b.family, 0, 0, 0)
}

func (b *Batch) header(kind, flags uint16, s subject) {
	seq := uint32(len(b.messages))
	b.messages = append(b.messages, message{start: len(b.buf), subject: s})
	b.buf = append(b.buf, 0, 0, 0, 0) // the length, by endMessage
	b.buf = binary.NativeEndian.AppendUint16(b.buf, kind)
	b.buf = binary.NativeEndian.AppendUint16(b.buf, flagRequest|flags)
	b.buf = binary.NativeEndian.AppendUint32(b.buf, seq)
	b.buf = append(b.buf, 0, 0, 0, 0)
}

// endMessage sets the length of the last message. All attributes are padded, so it is aligned.
func (b *Batch) endMessage() {
	start := b.messages[len(b.messages)-1].start
	binary.NativeEndian.PutUint32(b.buf[start:], uint32(len(b.buf)-start))
}

// subject is what a message is about.
type subject struct{ what, name string }

// Subject says what the message with a sequence number is about: "chain random-3", "elements of services4".
func (b *Batch) Subject(seq uint32) string {
	if int64(seq) >= int64(len(b.messages)) {
		return "no message of the batch"
	}
	s := b.messages[seq].subject
	if s.name == "" {
		return s.what
	}
	return s.what + " " + s.name
}

// Element finds the element that a refusal is about, from the sequence number of the message and the offset in it that
// the kernel names. It is not ok if there is none.
func (b *Batch) Element(seq uint32, offset int) (set string, key nft.Value, ok bool) {
	if int64(seq) >= int64(len(b.messages)) || b.messages[seq].subject.what != elementsOf {
		return "", nft.Value{}, false
	}
	end := len(b.buf)
	if int(seq)+1 < len(b.messages) {
		end = b.messages[seq+1].start
	}
	elements, err := DecodeElements(b.buf[b.messages[seq].start+messageHeader : end])
	if err != nil {
		return "", nft.Value{}, false
	}
	e, ok := elements.at(offset - messageHeader)
	return elements.Set, e.Key, ok
}

// Grow makes room for n more bytes, which saves copying where many are to come.
func (b *Batch) Grow(n int) { b.buf = slices.Grow(b.buf, n) }
