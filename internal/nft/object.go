package nft

import "time"

// Table is a table of family inet.
type Table struct {
	Name    string
	Comment string
}

// Chain is a chain and its rules.
type Chain struct {
	Name    string
	Comment string
	Base    *Base // nil for a chain that only jumps lead to
	Rules   []Rule
}

// Base is where the kernel enters a base chain. Its policy is accept.
type Base struct {
	Type     ChainType
	Hook     Hook
	Priority int32
}

// ChainType is the type of a base chain.
type ChainType string

// The types of base chains.
const (
	Filter ChainType = "filter"
	NAT    ChainType = "nat"
)

// Hook is a point on a packet's way, by the kernel's number.
type Hook uint32

// The hooks, as in linux/netfilter.h.
const (
	Prerouting Hook = iota
	Input
	Forward
	Output
	Postrouting
)

// The priorities of base chains, as nft names them.
const (
	PriorityMangle int32 = -150
	PriorityDstNAT int32 = -100
	PriorityFilter int32 = 0
	PrioritySrcNAT int32 = 100
)

// Rule is one rule. Its statements are worked through until one does not match.
type Rule struct {
	Statements []Statement
	Comment    string
}

// Set is a named set, or a map if Data or Verdicts is set.
type Set struct {
	Name    string
	Comment string
	Key     []Field
	Data    []Field // of a map
	// Verdicts makes it a verdict map.
	Verdicts bool
	// Interval allows ranges as keys.
	Interval bool
	// Dynamic allows rules to add elements, which may time out.
	Dynamic bool
	// Timeout is that of elements which do not say one; 0: they stay. Only with Dynamic.
	Timeout time.Duration
	// Size is the greatest number of elements, 0 for no limit. With a size and without Dynamic, the kernel uses a hash
	// table of fixed size, which is twice as fast to fill.
	Size uint32
	// Counter counts the packets that hit each element.
	Counter bool
}

// Field is one part of a key or of data.
type Field struct {
	Type Type
	// Like, if set, has the field declared by an expression (typeof) instead of by its type: numgen has no type that
	// nft -f accepts. It is the same for the kernel.
	Like Expr
}

// Type is the type of a field.
type Type uint8

// The types.
const (
	IPv4Addr    Type = iota // 4 bytes
	IPv6Addr                // 16
	InetProto               // 1
	InetService             // 2, a port
	ClassID                 // 4, in the byte order of the machine; printed as major:minor in hexadecimal
	Integer                 // 4, in the byte order of the machine; only with Like
	PacketMark              // 4, in the byte order of the machine
)

// Element is an element of a Set.
type Element struct {
	// Key is empty for the element of all keys that no other has, of which there may be one.
	Key Value
	// End is the last key of a range (inclusive), for an Interval set; empty: the key alone. Of concatenations it is
	// one End for each field, concatenated.
	End     Value
	Data    Value
	Verdict Verdict // for Verdicts
	Comment string
	// Expires is what is left of a Dynamic element's life, and Timeout the whole; 0: unknown or none.
	Timeout, Expires time.Duration
	// Packets is what a Counter has counted.
	Packets uint64
}
