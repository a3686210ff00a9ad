package wire

import (
	"encoding/binary"

	"sluice/internal/nft"
)

// Rule is a rule as the kernel tells of it. Its expressions are not decoded, but for where it leads and what it counts.
type Rule struct {
	Family       uint8
	Table, Chain string
	Handle       uint64
	// Hash tells whether it is a rule of ours as it should be, see [Hash]; 0: it has none.
	Hash    uint64
	Comment string
	// Target is the chain that the rule jumps or goes to; empty: none, or more than one by a map.
	Target string
	// Packets is what the rule's counter has counted.
	Packets uint64
}

// DecodeRule reads a message NewRule or DelRule.
func DecodeRule(data []byte) (rule Rule, err error) {
	family, r := body(data)
	rule.Family = family
	for kind, v, ok := r.next(); ok; kind, v, ok = r.next() {
		switch kind {
		case ruleTable:
			rule.Table = text(v)
		case ruleChain:
			rule.Chain = text(v)
		case ruleHandle:
			rule.Handle = r.uint64(v)
		case ruleUserdata:
			rule.Comment = comment(v, udataComment)
			if hash := udata(v, udataHash); len(hash) == 8 {
				rule.Hash = binary.BigEndian.Uint64(hash)
			}
		case ruleExpressions:
			rule.Target, rule.Packets = r.target(v), r.counted(v)
		}
	}
	return rule, r.err()
}

// target is where the first expression with a chain leads to.
func (r *reader) target(expressions []byte) (chain string) {
	in := reader{rest: expressions}
	for _, e, ok := in.next(); ok && chain == ""; _, e, ok = in.next() {
		expr := reader{rest: e}
		name := expr.find(exprName)
		if text(name) == "immediate" {
			data := reader{rest: expr.find(exprData)}
			value := reader{rest: data.find(immediateData)}
			chain = in.verdict(value.rest).Chain
			in.bad = in.bad || data.bad
		}
		in.bad = in.bad || expr.bad
	}
	r.bad = r.bad || in.bad
	return chain
}

// counted is what the counter among expressions has counted.
func (r *reader) counted(expressions []byte) (n uint64) {
	in := reader{rest: expressions}
	for _, e, ok := in.next(); ok; _, e, ok = in.next() {
		n += r.packets(e)
	}
	r.bad = r.bad || in.bad
	return n
}

// verdict reads data that may be a verdict; the zero Verdict: it is none that package nft has.
func (r *reader) verdict(data []byte) (verdict nft.Verdict) {
	in := reader{rest: data}
	code := reader{rest: in.find(dataCode)}
	for kind, v, ok := code.next(); ok; kind, v, ok = code.next() {
		switch kind {
		case verdictCode:
			verdict.Kind = kindOf(int32(code.uint32(v)))
		case verdictChain:
			verdict.Chain = text(v)
		}
	}
	r.bad = r.bad || in.bad || code.bad
	return verdict
}

func kindOf(code int32) nft.VerdictKind {
	switch code {
	case codeAccept:
		return nft.Accept
	case codeDrop:
		return nft.Drop
	case codeReturn:
		return nft.Return
	case codeJump:
		return nft.Jump
	case codeGoto:
		return nft.Goto
	}
	return nft.NoVerdict
}
