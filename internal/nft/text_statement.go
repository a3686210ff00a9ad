package nft

import (
	"fmt"
	"strconv"
	"strings"
)

// appendStatement appends a statement as nft writes it.
func appendStatement(b []byte, s Statement) []byte {
	switch s := s.(type) {
	case Is:
		return s.append(b)
	case IsName:
		return append(append(appendNot(appendExpr(b, s.Left), s.Not), ' '), s.quoted()...)
	case HasBits:
		return s.append(b)
	case FibIsLocal:
		return append(appendNot(appendExpr(b, s.Of), s.Not), " local"...)
	case In:
		return append(append(appendNot(appendExpr(b, s.Left), s.Not), " @"...), s.Set...)
	case OneOf:
		return s.append(b)
	case SetMeta:
		return s.append(b)
	case Vmap:
		return append(append(appendExpr(b, s.Key), " vmap @"...), s.Map...)
	case DNAT:
		return appendExpr(append(b, "dnat "+s.family()+" to "...), s.To)
	case DNATAddr:
		return append(b, "dnat "+DNAT{IPv6: s.To.Is6()}.family()+" to "+s.To.String()...)
	case Masquerade:
		return append(b, "masquerade fully-random"...)
	case Reject:
		return s.append(b)
	case Update:
		return appendDynamic(b, "update", s)
	case Remove:
		return appendDynamic(b, "delete", Update{Map: s.Map, Key: s.Key, Data: s.Data})
	case Verdict:
		return append(b, s.String()...)
	case Unknown:
		return append(b, s.Text...)
	default:
		panic(fmt.Sprintf("nft: no text for statement %T", s))
	}
}

func appendNot(b []byte, not bool) []byte {
	if not {
		return append(b, " !="...)
	}
	return b
}

func (s Is) append(b []byte) []byte {
	b = appendNot(appendExpr(b, s.Left), s.Not)
	if _, ok := s.Left.(Bits); ok && !s.Not {
		b = append(b, " =="...)
	}
	b = appendConstant(append(b, ' '), s.Left, s.Right)
	if s.Prefix > 0 {
		b = strconv.AppendInt(append(b, '/'), int64(s.Prefix), 10)
	}
	return b
}

// quoted is the name; a star at its end is the mark of a wildcard, unless there is a backslash before it.
func (s IsName) quoted() string {
	name, star := s.Name, strings.HasSuffix(s.Name, "*")
	switch {
	case s.Wildcard:
		name += "*"
	case star:
		name = strings.TrimSuffix(name, "*") + `\*`
	}
	return `"` + name + `"`
}

func (s HasBits) append(b []byte) []byte {
	b = append(appendExpr(b, s.Left), ' ')
	names := map[uint32]string{
		StateInvalid: "invalid", StateEstablished: "established", StateRelated: "related", StateNew: "new",
		StateUntracked: "untracked",
	}
	if s.Left == CTStatus {
		names = map[uint32]string{StatusDNAT: "dnat"}
	}
	separator := ""
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if s.Bits&bit == 0 {
			continue
		}
		name, ok := names[bit]
		if !ok {
			name = fmt.Sprintf("0x%x", bit)
		}
		b = append(b, separator+name...)
		separator = ","
	}
	return b
}

func (s OneOf) append(b []byte) []byte {
	b = append(appendExpr(b, s.Left), " { "...)
	for i, v := range s.List {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendField(b, s.Type, v)
	}
	return append(b, " }"...)
}

func (s SetMeta) append(b []byte) []byte {
	b = append(appendExpr(b, s.Meta), " set "...)
	if s.To == nil {
		return appendNumber(b, s.Meta, 0)
	}
	return appendExpr(b, s.To)
}

func (s Reject) append(b []byte) []byte {
	b = append(b, "reject"...)
	if s.Reset {
		b = append(b, " with tcp reset"...)
	}
	return b
}

func (s DNAT) family() string {
	if s.IPv6 {
		return "ip6"
	}
	return "ip"
}

func appendDynamic(b []byte, verb string, s Update) []byte {
	b = appendExpr(append(b, verb+" @"+s.Map+" { "...), s.Key)
	if s.Timeout > 0 {
		b = appendDuration(append(b, " timeout "...), s.Timeout)
	}
	if s.Data != nil {
		b = appendExpr(append(b, " : "...), s.Data)
	}
	return append(b, " }"...)
}

// String is the verdict as nft writes it: `goto NAME`.
func (v Verdict) String() string {
	switch v.Kind {
	case Accept:
		return "accept"
	case Drop:
		return "drop"
	case Return:
		return "return"
	case Jump:
		return "jump " + v.Chain
	case Goto:
		return "goto " + v.Chain
	default:
		return "none"
	}
}
