package rules

import (
	"fmt"
	"slices"
)

// normalTarget brings the options of a target that is known into one spelling, without those that it assumes anyway.
func normalTarget(target string, options []Option) []Option {
	switch target {
	case "MARK":
		return edit(options, normalSetMark)
	case "CONNMARK":
		return sorted(edit(connmarkMasks(options), normalSetMark))
	case "REJECT":
		return edit(options, func(o Option) (Option, bool) { return o, !defaultReject(o) })
	case "DNAT", "SNAT":
		return sorted(edit(options, normalNAT))
	case "MASQUERADE", "REDIRECT":
		return sorted(options)
	case "LOG":
		return sorted(edit(options, func(o Option) (Option, bool) {
			return o, o.Name != "log-level" || !slices.Contains([]string{"4", "warning", "warn"}, o.Value())
		}))
	}
	return options
}

// normalSetMark turns the ways to set a mark into the one that the kernel keeps: mark = mark &^ mask ^ value.
func normalSetMark(o Option) (Option, bool) {
	v, ok := SetMark(o)
	if !ok {
		return o, true
	}
	return Option{Name: "set-xmark", Values: []string{v.String()}}, true
}

// MarkChange is what a MARK or CONNMARK target does: it clears the bits of Mask and then flips those of Value.
type MarkChange struct{ Value, Mask uint32 }

// String is the argument of --set-xmark.
func (v MarkChange) String() string { return fmt.Sprintf("%#x/%#x", v.Value, v.Mask) }

// match is the argument of "-m mark --mark", where the whole mark needs no mask.
func (v MarkChange) match() string {
	if v.Mask == allBits {
		return fmt.Sprintf("%#x", v.Value)
	}
	return v.String()
}

// SetMark reads an option of MARK or CONNMARK that sets the mark. It reports false for others.
func SetMark(o Option) (MarkChange, bool) {
	v, ok := ParseMark(o.Value())
	if !ok || len(o.Values) != 1 || o.Negated {
		return MarkChange{}, false
	}
	switch o.Name {
	case "set-xmark":
		return v, true
	case "set-mark":
		return MarkChange{v.Value, v.Mask | v.Value}, true
	case "or-mark":
		return MarkChange{v.Value, v.Value}, true
	case "and-mark":
		return MarkChange{0, ^v.Value}, true
	case "xor-mark":
		return MarkChange{v.Value, 0}, true
	}
	return MarkChange{}, false
}

// connmarkMasks gives --save-mark and --restore-mark the masks that they assume.
func connmarkMasks(options []Option) []Option {
	_, save := Find(options, "save-mark")
	_, restore := Find(options, "restore-mark")
	if !save && !restore {
		return options
	}
	mask, given := Find(options, "mask")
	options = slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return o.Name == "mask" })
	if !given {
		mask.Values = []string{"0xffffffff"}
	}
	for _, name := range []string{"nfmask", "ctmask"} {
		if _, ok := Find(options, name); !ok {
			options = append(options, Option{Name: name, Values: mask.Values})
		}
	}
	return options
}

// defaultReject reports whether the option asks for the error that REJECT sends when nothing is asked for.
func defaultReject(o Option) bool {
	defaults := []string{"icmp-port-unreachable", "icmp6-port-unreachable", "port-unreach"}
	return o.Name == "reject-with" && slices.Contains(defaults, o.Value())
}

func normalNAT(o Option) (Option, bool) {
	if o.Name == "to-destination" || o.Name == "to-source" {
		o.Values = []string{normalNATAddress(o.Value())}
	}
	return o, true
}
