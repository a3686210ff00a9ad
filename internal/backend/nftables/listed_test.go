package nftables

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// rigOfAllKinds has a Service of each way to balance.
func rigOfAllKinds(t testing.TB, opts Options) *rig {
	t.Helper()
	return newRigWith(
		t, opts, service(1, 5, 6), service(2, 5),
		serviceWith(3, addrsOf("10.244.1.20"), func(s *model.Service) { s.Affinity = time.Hour }),
		serviceWith(4, addrsOf("10.244.1.20"), func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }),
	)
}

// TestListing: what is written over netlink is listed as it is rendered, sets and chains in the same order, with all
// comments and rules.
func TestListing(t *testing.T) {
	b := inKernel(t)
	for _, opts := range []Options{DefaultOptions(), ipvsOptions()} {
		w := rigOfAllKinds(t, opts)
		apply(t, b, w.rules)
		rendered := strings.TrimPrefix(text(t, w.rules), "table inet sluice\ndelete table inet sluice\n")
		if diff := cmp.Diff(withoutElements(rendered), withoutElements(nftProgram(t, "", "list", "table", "inet", tableName))); diff != "" {
			t.Errorf("-rendered +listed:\n%s", diff)
		}
	}
}

// withoutElements is the lines of a table but those of elements. Of the same rule, nft leaves out the family and the
// protocol where something else implies them, names the ICMP message, calls the route 0:0 none, writes == before a set,
// and takes a mask for a prefix.
func withoutElements(table string) (lines []string) {
	same := strings.NewReplacer(
		"meta nfproto ipv4 ", "", "meta nfproto ipv6 ", "", "priority set none", "priority set 0:0", "== none", "== 0:0", "== @", "@",
		" with icmp port-unreachable", "", " with icmpv6 port-unreachable", "",
		"meta l4proto icmp icmp", "icmp", "meta l4proto ipv6-icmp icmpv6", "icmpv6", "meta l4proto tcp reject", "reject",
		"& 0xffffe000 == 0x00002000", "0x00002000/19",
	)
	inside := false
	for l := range strings.Lines(table) {
		inside = inside || strings.HasPrefix(l, "\t\telements = ")
		if !inside {
			lines = append(lines, same.Replace(l))
		}
		inside = inside && !strings.HasSuffix(l, " }\n")
	}
	return lines
}

// TestComments: every set and every chain says what it is, in no more bytes than nft takes.
func TestComments(t *testing.T) {
	check := func(name, comment string) {
		if comment == "" || nft.CleanComment(comment) != comment {
			t.Errorf("%s has the comment %q", name, comment)
		}
	}
	check("the table", ourTable.Comment)
	for _, opts := range []Options{DefaultOptions(), ipvsOptions()} {
		c := rigOfAllKinds(t, opts).rules.contents()
		for def := range c.sets {
			check(def.Name, def.Comment)
		}
		for ch := range c.chains {
			check(ch.Name, ch.Comment)
		}
	}
}
