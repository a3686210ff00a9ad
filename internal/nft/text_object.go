package nft

import (
	"strconv"
	"strings"
)

// String is the line that declares a base chain.
func (c Base) String() string {
	return "type " + string(c.Type) + " hook " + c.Hook.String() + " priority " + c.priority() + "; policy accept;"
}

// priority is a number, or the name that nft has for it at that hook.
func (c Base) priority() string {
	switch {
	case c.Priority == PriorityFilter:
		return "filter"
	case c.Priority == PriorityMangle:
		return "mangle"
	case c.Priority == PriorityDstNAT && c.Hook == Prerouting:
		return "dstnat"
	case c.Priority == PrioritySrcNAT && c.Hook == Postrouting:
		return "srcnat"
	}
	return strconv.Itoa(int(c.Priority))
}

// String is nft's name of the hook.
func (h Hook) String() string {
	names := [...]string{"prerouting", "input", "forward", "output", "postrouting"}
	if int(h) < len(names) {
		return names[h]
	}
	return strconv.Itoa(int(h))
}

// String is the rule as nft writes it.
func (r Rule) String() string { return string(r.append(nil)) }

func (r Rule) append(b []byte) []byte {
	for i, s := range r.Statements {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendStatement(b, s)
	}
	return appendComment(b, r.Comment)
}

// Kind is what the set is declared as: set or map.
func (s *Set) Kind() string {
	if s.Verdicts || len(s.Data) > 0 {
		return "map"
	}
	return "set"
}

// appendHead prints all of a set but its elements and the closing brace.
func (s *Set) appendHead(b []byte) []byte {
	b = append(b, "\t"+s.Kind()+" "+s.Name+" {\n\t\t"...)
	b = append(s.appendType(b), '\n')
	if s.Size != 0 {
		b = append(b, "\t\tsize "...)
		b = append(strconv.AppendUint(b, uint64(s.Size), 10), '\n')
	}
	if flags := s.flags(); flags != "" {
		b = append(b, "\t\tflags "+flags+"\n"...)
	}
	if s.Counter {
		b = append(b, "\t\tcounter\n"...)
	}
	if s.Timeout != 0 {
		b = append(b, "\t\ttimeout "...)
		b = append(appendDuration(b, s.Timeout), '\n')
	}
	if s.Comment != "" {
		b = append(b, "\t\tcomment "+quote(s.Comment)+"\n"...)
	}
	return b
}

func (s *Set) flags() string {
	var flags []string
	if s.Interval {
		flags = append(flags, "interval")
	}
	if s.Dynamic {
		flags = append(flags, "dynamic", "timeout")
	}
	return strings.Join(flags, ",")
}

func (s *Set) appendType(b []byte) []byte {
	byExpression := ByExpression(s.Key) || ByExpression(s.Data)
	if byExpression {
		b = append(b, "typeof "...)
	} else {
		b = append(b, "type "...)
	}
	b = appendFields(b, s.Key, byExpression)
	switch {
	case s.Verdicts:
		b = append(b, " : verdict"...)
	case len(s.Data) > 0:
		b = appendFields(append(b, " : "...), s.Data, byExpression)
	}
	return b
}

func appendFields(b []byte, fields []Field, byExpression bool) []byte {
	for i, f := range fields {
		if i > 0 {
			b = append(b, " . "...)
		}
		if byExpression {
			b = appendExpr(b, f.Expr())
		} else {
			b = append(b, f.Type.String()...)
		}
	}
	return b
}
