package demo

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// elementsOf yields the elements in a table's text, each with its set or map.
func elementsOf(table string) iter.Seq2[string, string] {
	return func(yield func(set, element string) bool) {
		set, inside := "", false
		for l := range strings.Lines(table) {
			l = strings.TrimSpace(l)
			if words := strings.Fields(l); len(words) == 3 && (words[0] == "set" || words[0] == "map") {
				set = words[1]
			}
			l, first := strings.CutPrefix(l, "elements = { ")
			if inside = inside || first; !inside {
				continue
			}
			l, last := strings.CutSuffix(l, " }")
			if !yield(set, strings.TrimSuffix(l, ",")) {
				return
			}
			inside = !last
		}
	}
}

// elementsWith are the elements that have one of some words, each with its set or map in front. What was counted so far
// is left out.
func elementsWith(table string, words ...string) string {
	var found strings.Builder
	for set, e := range elementsOf(table) {
		if set != "connections" && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(e, w) }) {
			fmt.Fprintf(&found, "%-12s  %s\n", set, e)
		}
	}
	return found.String()
}

// route is the number that leads to endpoints: a list of them, a bucket and whom to masquerade. See package
// backend/nftables.
type route uint32

// String is the number as nft prints it.
func (r route) String() string { return fmt.Sprintf("%x:%x", uint32(r)>>16, uint32(r)&0xffff) }

func (r route) list() route   { return r &^ 0xfff }
func (r route) bucket() route { return r & 0xffc }

// routeOf finds where an element with a comment leads, and the chain that its bucket stands for.
func routeOf(table, set, comment string) (r route, chain string, err error) {
	for s, e := range elementsOf(table) {
		if s != set || !strings.Contains(e, `comment "`+comment+`"`) {
			continue
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(e[max(0, strings.LastIndex(e, " : ")):], " : %x:%x", &major, &minor); err != nil {
			return 0, "", fmt.Errorf("where element %s of %s leads: %w", e, set, err)
		}
		r = route(major<<16 | minor)
	}
	for s, e := range elementsOf(table) {
		if to, ok := strings.CutPrefix(e, r.bucket().String()+" : goto "); ok && s == "buckets" {
			return r, to, nil
		}
	}
	return 0, "", fmt.Errorf("%s has no element for %s that leads to a chain", set, comment)
}
