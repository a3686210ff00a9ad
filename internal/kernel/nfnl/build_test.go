package nfnl_test

import (
	"context"
	"encoding/binary"
	"iter"
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// Types of messages as their headers have them.
const (
	newTable   = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE
	getTable   = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
	delTable   = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE
	newChain   = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN
	newRule    = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE
	newSet     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWSET
	newElement = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWSETELEM
	getElement = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETSETELEM
	delElement = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELSETELEM
	newGen     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWGEN
)

const (
	tableName = "t"
	setName   = "s"
)

// batch is bytes for Commit. Its messages are numbered from 1; the batch begin is 0.
type batch struct {
	bytes []byte
	seq   uint32
}

// newBatch begins a batch.
func newBatch() *batch {
	b := &batch{}
	b.bytes = appendMessage(b.bytes, unix.NFNL_MSG_BATCH_BEGIN, 0, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)
	return b
}

// message adds a message of the table's family with the attributes given.
func (b *batch) message(kind, flags uint16, attributes ...[]byte) *batch {
	b.seq++
	b.bytes = appendMessage(b.bytes, kind, flags, b.seq, unix.NFPROTO_INET, 0, join(attributes...))
	return b
}

// end is the whole batch.
func (b *batch) end() []byte {
	return appendMessage(b.bytes, unix.NFNL_MSG_BATCH_END, 0, b.seq+1, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)
}

// table adds the table and a set of 4-byte numbers in it.
func (b *batch) table() *batch {
	b.message(newTable, unix.NLM_F_CREATE|unix.NLM_F_EXCL, text(unix.NFTA_TABLE_NAME, tableName))
	return b.message(newSet, unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		text(unix.NFTA_SET_TABLE, tableName), text(unix.NFTA_SET_NAME, setName), number(unix.NFTA_SET_ID, 1),
		number(unix.NFTA_SET_KEY_LEN, 4), number(unix.NFTA_SET_KEY_TYPE, 0))
}

// elements adds one message with the numbers given.
func (b *batch) elements(kind, flags uint16, keys ...uint32) *batch {
	return b.message(kind, flags, elements(setName, keys...))
}

// elements are the attributes that name a set and elements of it.
func elements(set string, keys ...uint32) []byte {
	var list []byte
	for _, key := range keys {
		value := attr(unix.NFTA_DATA_VALUE, binary.BigEndian.AppendUint32(nil, key))
		list = append(list, nest(unix.NFTA_LIST_ELEM, nest(unix.NFTA_SET_ELEM_KEY, value))...)
	}
	return join(text(unix.NFTA_SET_ELEM_LIST_TABLE, tableName), text(unix.NFTA_SET_ELEM_LIST_SET, set),
		nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, list))
}

// jump adds a rule to one chain that jumps to another.
func (b *batch) jump(from, to string) *batch {
	verdict := nest(unix.NFTA_DATA_VERDICT, join(
		number(unix.NFTA_VERDICT_CODE, math.MaxUint32&unix.NFT_JUMP), text(unix.NFTA_VERDICT_CHAIN, to)))
	immediate := join(text(unix.NFTA_EXPR_NAME, "immediate"), nest(unix.NFTA_EXPR_DATA, join(
		number(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT), nest(unix.NFTA_IMMEDIATE_DATA, verdict))))
	return b.message(newRule, unix.NLM_F_CREATE|unix.NLM_F_APPEND,
		text(unix.NFTA_RULE_TABLE, tableName), text(unix.NFTA_RULE_CHAIN, from),
		nest(unix.NFTA_RULE_EXPRESSIONS, nest(unix.NFTA_LIST_ELEM, immediate)))
}

// chain adds a chain, with attributes that make it a base chain or none.
func (b *batch) chain(name string, base ...[]byte) *batch {
	names := [][]byte{text(unix.NFTA_CHAIN_TABLE, tableName), text(unix.NFTA_CHAIN_NAME, name)}
	return b.message(newChain, unix.NLM_F_CREATE, append(names, base...)...)
}

// request is the payload of a request that is no part of a batch.
func request(attributes ...[]byte) []byte {
	return append([]byte{unix.NFPROTO_INET, 0, 0, 0}, join(attributes...)...)
}

func appendMessage(b []byte, kind, flags uint16, seq uint32, family byte, resource uint16, attributes []byte) []byte {
	b = binary.NativeEndian.AppendUint32(b, uint32(20+len(attributes)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, family, 0)
	b = binary.BigEndian.AppendUint16(b, resource)
	return append(b, attributes...)
}

func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func nest(kind uint16, value []byte) []byte { return attr(kind|unix.NLA_F_NESTED, value) }

func text(kind uint16, s string) []byte { return attr(kind, append([]byte(s), 0)) }

func number(kind uint16, n uint32) []byte { return attr(kind, binary.BigEndian.AppendUint32(nil, n)) }

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// open opens a Conn until the test ends.
func open(t testing.TB) *nfnl.Conn {
	t.Helper()
	nstest.Require(t)
	c, err := nfnl.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// openWithTable opens a Conn; the table is there, with the elements given, until the test ends.
func openWithTable(t testing.TB, keys ...uint32) *nfnl.Conn {
	t.Helper()
	c := open(t)
	b := newBatch().table()
	if len(keys) > 0 {
		b.elements(newElement, unix.NLM_F_CREATE, keys...)
	}
	commit(t, c, b.end())
	t.Cleanup(func() {
		commit(t, open(t), newBatch().message(delTable, 0, text(unix.NFTA_TABLE_NAME, tableName)).end())
	})
	return c
}

// commit also serves what a test cleans up, after the end of its context.
func commit(t testing.TB, c *nfnl.Conn, batch []byte) {
	t.Helper()
	if err := c.Commit(context.WithoutCancel(t.Context()), batch); err != nil {
		t.Fatal(err)
	}
}

func generation(t testing.TB, c *nfnl.Conn) uint32 {
	t.Helper()
	id, err := c.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// attributes yields the values of the attributes of one type.
func attributes(b []byte, kind uint16) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) >= 4 {
			n := int(binary.NativeEndian.Uint16(b))
			if binary.NativeEndian.Uint16(b[2:])&^unix.NLA_F_NESTED == kind && !yield(b[4:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}
