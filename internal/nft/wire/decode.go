package wire

import (
	"time"

	"sluice/internal/nft"
)

// Table is a table as the kernel tells of it.
type Table struct {
	Family  uint8
	Name    string
	Handle  uint64
	Dormant bool // its chains are not entered
	Comment string
}

// DecodeTable reads a message NewTable or DelTable. Here and below, data is what follows the netlink header.
func DecodeTable(data []byte) (t Table, err error) {
	family, r := body(data)
	t.Family = family
	for kind, v, ok := r.next(); ok; kind, v, ok = r.next() {
		switch kind {
		case tableName:
			t.Name = text(v)
		case tableFlags:
			t.Dormant = r.uint32(v)&tableDormant != 0
		case tableHandle:
			t.Handle = r.uint64(v)
		case tableUserdata:
			t.Comment = comment(v, udataComment)
		}
	}
	return t, r.err()
}

// Chain is a chain as the kernel tells of it, without its rules.
type Chain struct {
	Family      uint8
	Table, Name string
	Handle      uint64
	Base        *nft.Base // nil for a chain that only jumps lead to
	Policy      uint32    // of a base chain: 0 drop, 1 accept
	Uses        uint32    // rules in it and jumps to it
	Comment     string
}

// DecodeChain reads a message NewChain or DelChain.
func DecodeChain(data []byte) (c Chain, err error) {
	family, r := body(data)
	c.Family = family
	var base nft.Base
	for kind, v, ok := r.next(); ok; kind, v, ok = r.next() {
		switch kind {
		case chainTable:
			c.Table = text(v)
		case chainName:
			c.Name = text(v)
		case chainHandle:
			c.Handle = r.uint64(v)
		case chainType:
			base.Type = nft.ChainType(text(v))
		case chainPolicy:
			c.Policy = r.uint32(v)
		case chainUse:
			c.Uses = r.uint32(v)
		case chainUserdata:
			c.Comment = comment(v, udataComment)
		case chainHook:
			c.Base = &base
			r.hook(&base, v)
		}
	}
	return c, r.err()
}

func (r *reader) hook(base *nft.Base, nested []byte) {
	in := reader{rest: nested}
	for kind, v, ok := in.next(); ok; kind, v, ok = in.next() {
		switch kind {
		case hookNumber:
			base.Hook = nft.Hook(in.uint32(v))
		case hookPriority:
			base.Priority = int32(in.uint32(v))
		}
	}
	r.bad = r.bad || in.bad
}

// Set is a set as the kernel tells of it, without its elements.
type Set struct {
	Family            uint8
	Table, Name       string
	Handle            uint64
	Flags             uint32
	KeyType, KeyLen   uint32
	DataType, DataLen uint32
	Size              uint32
	Timeout           time.Duration
	Counter           bool
	Comment           string
}

// Is reports whether s is the set that AddSet makes of another. Whether it is in the right table is left to the caller.
func (s Set) Is(other *nft.Set) bool {
	s.Table, s.Handle = "", 0
	if s.DataType == verdictType {
		s.DataLen = 0 // the kernel tells the size of its own structure
	}
	return s == describe(other)
}

// Anonymous reports whether s belongs to a rule.
func (s Set) Anonymous() bool { return s.Flags&flagAnonymous != 0 }

// DecodeSet reads a message NewSet or DelSet.
func DecodeSet(data []byte) (s Set, err error) {
	family, r := body(data)
	s.Family = family
	for kind, v, ok := r.next(); ok; kind, v, ok = r.next() {
		switch kind {
		case setTable:
			s.Table = text(v)
		case setName:
			s.Name = text(v)
		case setHandle:
			s.Handle = r.uint64(v)
		case setFlags:
			s.Flags = r.uint32(v)
		case setKeyType:
			s.KeyType = r.uint32(v)
		case setKeyLen:
			s.KeyLen = r.uint32(v)
		case setDataType:
			s.DataType = r.uint32(v)
		case setDataLen:
			s.DataLen = r.uint32(v)
		case setTimeout:
			s.Timeout = duration(r.uint64(v))
		case setUserdata:
			s.Comment = comment(v, udataSetComment)
		case setDesc:
			s.Size = r.size(v)
		case setExpr:
			s.Counter = r.isCounter(v)
		}
	}
	return s, r.err()
}

func (r *reader) size(nested []byte) (n uint32) {
	in := reader{rest: nested}
	if v := in.find(descSize); v != nil {
		n = in.uint32(v)
	}
	r.bad = r.bad || in.bad
	return n
}

func (r *reader) isCounter(nested []byte) bool {
	in := reader{rest: nested}
	name := in.find(exprName)
	r.bad = r.bad || in.bad
	return text(name) == "counter"
}

// duration is a time in milliseconds. What a Duration cannot hold is its greatest.
func duration(ms uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(ms, most)) * time.Millisecond
}

// Generation is the number of a state of all of nf_tables in a network namespace.
type Generation uint32

// DecodeGeneration reads a message NewGen.
func DecodeGeneration(data []byte) (g Generation, err error) {
	_, r := body(data)
	if v := r.find(genID); v != nil {
		g = Generation(r.uint32(v))
	}
	return g, r.err()
}
