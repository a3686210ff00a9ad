package kill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// element is one of a set or map, as nft prints it.
type element struct{ key, data, comment string }

// elementsOf reads the elements of a table's text by their sets.
func elementsOf(table string) map[string][]element {
	all := map[string][]element{}
	for _, set := range regexp.MustCompile(`(?s)\n\t(?:set|map) (\S+) \{.*?\n\t\}`).FindAllStringSubmatch(table, -1) {
		_, list, _ := strings.Cut(set[0], "elements = {")
		for text := range strings.SplitSeq(strings.TrimRight(list, "\n\t }"), ",") {
			if text = strings.TrimSpace(text); text != "" {
				all[set[1]] = append(all[set[1]], elementOf(text))
			}
		}
	}
	return all
}

func elementOf(text string) (e element) {
	text = regexp.MustCompile(` counter packets \d+ bytes \d+`).ReplaceAllString(text, "")
	e.key, e.data, _ = strings.Cut(text, " : ")
	e.key, e.comment, _ = strings.Cut(e.key, " comment ")
	return e
}

// meanings follow the numbers that lead from one element to the next.
type meanings struct {
	sets   map[string][]element
	owners map[uint32][]string // what leads to a list
	data   map[string]string   // of the elements of buckets and affine-endpoints
}

// meaning is what the elements of a table mean, whatever the numbers are: sorted lines. A list that nothing leads to shows
// by having no owner. What clients have put there is left out.
func meaning(table string) (lines []string) {
	m := &meanings{elementsOf(table), map[uint32][]string{}, map[string]string{}}
	for set, es := range m.sets {
		for _, e := range es {
			switch kindOf(set) {
			case "services", "outside", "node-ports", "outside-node-ports":
				m.owners[number(e.data)&^0xfff] = append(m.owners[number(e.data)&^0xfff], set+" "+e.key)
			case "buckets", "affine-endpoints":
				m.data[kindOf(set)+" "+e.key] = e.data
			}
		}
	}
	for set, es := range m.sets {
		for _, e := range es {
			lines = append(lines, m.of(set, e)...)
		}
	}
	slices.Sort(lines)
	return lines
}

// of are the lines of an element.
func (m *meanings) of(set string, e element) []string {
	switch kindOf(set) {
	case "affinity", "buckets", "node-addresses": // the manifests do not tell all addresses of the node
		return nil
	case "services", "outside", "node-ports", "outside-node-ports":
		n := number(e.data)
		return []string{fmt.Sprintf("%s %s %s: %s, masquerade %d", set, e.key, e.comment, m.chain(n), n&3)}
	case "endpoints":
		slot := e.key[strings.LastIndex(e.key, " "):]
		return []string{set + " of " + m.owner(e) + ": slot" + slot, set + " of " + m.owner(e) + ": " + e.data}
	case "affine-slots":
		slot := e.key[strings.LastIndex(e.key, " "):]
		return []string{set + " of " + m.owner(e) + ": slot" + slot, set + " of " + m.owner(e) + ": " + m.data["affine-endpoints "+e.data]}
	case "affine-endpoints":
		return []string{set + " of " + m.owner(e) + ": " + e.data}
	case "connections":
		return []string{set + " of " + m.owner(e) + ": " + e.comment}
	}
	return []string{set + " " + e.key} // a comment is of whichever Service came first
}

// owner is what leads to the list in an element's key.
func (m *meanings) owner(e element) string {
	return strings.Join(slices.Sorted(slices.Values(m.owners[number(e.key)&^0xfff])), ", ")
}

// chain is where a route's bucket leads.
func (m *meanings) chain(route uint32) string {
	bucket := route & 0xffc
	if to, ok := m.data[fmt.Sprintf("buckets 0:%x", bucket)]; ok {
		return to
	}
	return fmt.Sprintf("bucket %d", bucket>>2)
}

// kindOf is a set's name without the family.
func kindOf(set string) string { return strings.TrimRight(set, "46") }

// number reads what nft prints of a class ID. It has a name for zero.
func number(text string) uint32 {
	var major, minor uint32
	_, _ = fmt.Sscanf(text, "%x:%x", &major, &minor)
	return major<<16 | minor
}

// Tables that differ in numbers and order mean the same, and no others.
func TestMeaning(t *testing.T) {
	const table = `table inet sluice {
	map endpoints4 {
		typeof meta priority . numgen random mod 2 : ip daddr . th dport
		elements = { 0:1000 . 0 : 10.244.1.5 . 8080,
			     0:1000 . 1 : 10.244.2.5 . 8080 }
	}
	map services4 {
		type ipv4_addr . inet_proto . inet_service : classid
		elements = { 10.96.0.10 . tcp . 80 comment "default/stable" : 0:1011, 10.96.0.12 . tcp . 80 comment "default/gone" : none }
	}
	set connections {
		type classid
		elements = { 0:1000 counter packets 3 bytes 180 comment "default/stable" }
	}
	map buckets { # handle 7
		type classid : verdict
		elements = { 0:10 : goto random-2 }
	}
}`
	same := strings.NewReplacer("0:1000 . 0", "7:3000 . 1", "0:1000 . 1", "7:3000 . 0", "0:1000", "7:3000", "0:1011", "7:3021", "0:10 ", "0:20 ", "packets 3", "packets 4").Replace(table)
	if diff := cmp.Diff(meaning(table), meaning(same)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for old, changed := range map[string]string{
		"10.244.2.5": "10.244.2.6", "0:1000 . 1": "0:1000 . 2", "0:1011": "0:1012", "random-2": "random-3",
		"10.96.0.12": "10.96.0.13", "10.244.2.5 . 8080": "10.244.2.5 . 8080,\n0:1000 . 2 : 10.244.2.5 . 8080",
		"0:1000 counter": "0:2000 counter", ": none": ": 0:4",
	} {
		if cmp.Equal(meaning(table), meaning(strings.ReplaceAll(table, old, changed))) {
			t.Errorf("%s instead of %s means the same", changed, old)
		}
	}
}
