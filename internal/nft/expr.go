package nft

import (
	"net/netip"
	"time"
)

// Expr is something that can be asked of a packet, or looked up.
type Expr interface{ isExpr() }

// Meta is a fact about a packet that is not in its bytes.
type Meta string

// The facts, by nft's names.
const (
	NFProto  Meta = "nfproto"  // IPv4 or IPv6
	L4Proto  Meta = "l4proto"  // TCP, UDP, …
	Mark     Meta = "mark"     // 32 bits that rules and routing share
	Priority Meta = "priority" // 32 bits for queueing, a class ID
	IIFName  Meta = "iifname"  // name of the interface it came in by
)

// The numbers of families, for NFProto, as in linux/netfilter.h.
const (
	ProtoIPv4 uint8 = 2
	ProtoIPv6 uint8 = 10
)

// Payload is a field of a packet's headers.
type Payload string

// The fields, by nft's names.
const (
	IPSaddr  Payload = "ip saddr"
	IPDaddr  Payload = "ip daddr"
	IP6Saddr Payload = "ip6 saddr"
	IP6Daddr Payload = "ip6 daddr"
	THSport  Payload = "th sport"
	THDport  Payload = "th dport"
	// The kinds of ICMP messages; ask for the protocol first.
	ICMPType  Payload = "icmp type"
	ICMP6Type Payload = "icmpv6 type"
)

// The numbers of ICMP, for L4Proto, and of those of its messages that Sluice asks for.
const (
	ProtoICMP        uint8 = 1
	ProtoICMP6       uint8 = 58
	ICMPEchoRequest  uint8 = 8
	ICMP6EchoRequest uint8 = 128
)

// CT is a fact that connection tracking knows of a packet's connection.
type CT string

// The facts, by nft's names.
const (
	CTState  CT = "state"
	CTStatus CT = "status"
	// What the first packet of the connection asked for, before anything was translated.
	CTOriginalDaddr  CT = "original ip daddr"
	CTOriginalDaddr6 CT = "original ip6 daddr"
)

// Fib is the type of an address by the routing tables.
type Fib string

// The addresses that are asked about.
const (
	FibSaddr Fib = "saddr"
	FibDaddr Fib = "daddr"
)

// Numgen yields numbers from 0 up to Mod-1: at random, or one after the other for each packet that comes by.
type Numgen struct {
	Mod         uint32
	Incremental bool
}

// Bits combines a 32-bit expression with a constant.
type Bits struct {
	Of Expr
	Op BitOp
	By uint32
}

// BitOp is an operation on bits.
type BitOp string

// The operations.
const (
	And BitOp = "&"
	Or  BitOp = "|"
	Xor BitOp = "^"
)

// Concat is several expressions as one key.
type Concat []Expr

// Lookup is what a map has at a key. Where it has nothing, the rule does not match.
type Lookup struct {
	Key Expr
	Map string
}

func (Meta) isExpr()    {}
func (Payload) isExpr() {}
func (CT) isExpr()      {}
func (Fib) isExpr()     {}
func (Numgen) isExpr()  {}
func (Bits) isExpr()    {}
func (Concat) isExpr()  {}
func (Lookup) isExpr()  {}

// Statement is a test or an action of a rule.
type Statement interface{ isStatement() }

// Is tests an expression for a constant: its Value, or as many leading bits of it as Prefix says.
type Is struct {
	Left  Expr
	Not   bool
	Right Value
	// Prefix is the number of leading bits of an address that count; 0: all.
	Prefix int
}

// IsName tests the name of an interface, or its beginning.
type IsName struct {
	Left     Meta // IIFName
	Not      bool
	Name     string
	Wildcard bool
}

// HasBits tests whether CTState or CTStatus has any of the bits.
type HasBits struct {
	Left CT
	Bits uint32
}

// The bits of CTState and CTStatus that Sluice asks for, by the kernel's numbers.
const (
	StateInvalid     uint32 = 1
	StateEstablished uint32 = 2
	StateRelated     uint32 = 4
	StateNew         uint32 = 8
	StateUntracked   uint32 = 1 << 6
	StatusDNAT       uint32 = 1 << 5
)

// FibIsLocal tests whether an address is one of this machine's.
type FibIsLocal struct {
	Of  Fib
	Not bool
}

// In tests whether a named set has an expression.
type In struct {
	Left Expr
	Not  bool
	Set  string
}

// OneOf tests for a list of constants, as an anonymous set of one Field.
type OneOf struct {
	Left Expr
	Type Type
	List []Value
}

// SetMeta changes Mark or Priority.
type SetMeta struct {
	Meta Meta
	// To is the new value; nil stands for 0.
	To Expr
}

// Vmap takes the verdict that a verdict map has for an expression; without any the rule does not match.
type Vmap struct {
	Key Expr
	Map string
}

// DNAT rewrites the destination to an address and a port.
type DNAT struct {
	IPv6 bool
	To   Lookup
}

// DNATAddr rewrites the destination to one address, and leaves the port as it is.
type DNATAddr struct{ To netip.Addr }

// Masquerade rewrites the source to an address of this machine, and the port to a random one (fully-random).
type Masquerade struct{}

// Reject refuses with ICMP port unreachable, of whichever family the packet is.
type Reject struct {
	// Reset has it be a TCP reset, which also ends a connection that was open; ask for the protocol first.
	Reset bool
}

// With is what it refuses with, in words.
func (s Reject) With() string {
	if s.Reset {
		return "a TCP reset"
	}
	return "ICMP port unreachable"
}

// Update adds an element to a Dynamic map, or renews its timeout. It does not change the data of one that is there.
type Update struct {
	Map     string
	Key     Expr
	Timeout time.Duration
	Data    Expr
}

// Remove deletes an element from a Dynamic map, if it is there.
type Remove struct {
	Map  string
	Key  Expr
	Data Expr // the kernel wants one, and pays no heed to it
}

// Unknown is a rule or a part of one that is in a kernel and not understood. It cannot be written.
type Unknown struct{ Text string }

// Verdict ends the rule, and says where the packet goes on.
type Verdict struct {
	Kind  VerdictKind
	Chain string // for Jump and Goto
}

// VerdictKind is the kind of a verdict.
type VerdictKind uint8

// The kinds. The zero value is none.
const (
	NoVerdict VerdictKind = iota
	Accept
	Drop
	Return
	Jump
	Goto
)

func (Is) isStatement()         {}
func (Unknown) isStatement()    {}
func (IsName) isStatement()     {}
func (HasBits) isStatement()    {}
func (FibIsLocal) isStatement() {}
func (In) isStatement()         {}
func (OneOf) isStatement()      {}
func (SetMeta) isStatement()    {}
func (Vmap) isStatement()       {}
func (DNAT) isStatement()       {}
func (DNATAddr) isStatement()   {}
func (Masquerade) isStatement() {}
func (Reject) isStatement()     {}
func (Update) isStatement()     {}
func (Remove) isStatement()     {}
func (Verdict) isStatement()    {}
