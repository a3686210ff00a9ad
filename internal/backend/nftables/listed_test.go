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
func rigOfAllKinds(t testing.TB) *rig {
	t.Helper()
	return newRig(
		t, service(1, 5, 6), service(2, 5),
		serviceWith(3, addrsOf("10.244.1.20"), func(s *model.Service) { s.Affinity = time.Hour }),
		serviceWith(4, addrsOf("10.244.1.20"), func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }),
	)
}

// TestListing: what is written over netlink is listed as it is rendered, sets and chains in the same order, with all
// comments and rules.
func TestListing(t *testing.T) {
	b := inKernel(t)
	w := rigOfAllKinds(t)
	apply(t, b, w.rules)
	rendered := strings.TrimPrefix(text(t, w.rules), "table inet sluice\ndelete table inet sluice\n")
	if diff := cmp.Diff(withoutElements(rendered), withoutElements(nftProgram(t, "", "list", "table", "inet", tableName))); diff != "" {
		t.Errorf("-rendered +listed:\n%s", diff)
	}
}

// withoutElements is the lines of a table but those of elements. Of the same rule, nft leaves out the family where
// addresses imply it, names the ICMP message, calls the route 0:0 none, and writes == before a set.
func withoutElements(table string) (lines []string) {
	same := strings.NewReplacer(
		"meta nfproto ipv4 ", "", "meta nfproto ipv6 ", "", "priority set none", "priority set 0:0", "== none", "== 0:0", "== @", "@",
		" with icmp port-unreachable", "", " with icmpv6 port-unreachable", "",
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
	c := rigOfAllKinds(t).rules.contents()
	for def := range c.sets {
		check(def.Name, def.Comment)
	}
	for ch := range c.chains {
		check(ch.Name, ch.Comment)
	}
}
