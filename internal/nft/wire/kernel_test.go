package wire_test

import (
	"bytes"
	"iter"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft"
	"sluice/internal/testkit/nstest"
)

func TestProxy(t *testing.T) { same(t, proxy()) }

// same loads a ruleset as text by nft and then as a batch, and compares what nft makes of the two.
func same(t *testing.T, r *ruleset) {
	t.Helper()
	nstest.Require(t)
	conn, err := nfnl.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	program(t, r.text(t), "-f", "-")
	byText := view(t, r.table.Name)
	listing := program(t, "", "list", "table", "inet", r.table.Name)
	program(t, "", "delete", "table", "inet", r.table.Name)
	if err := conn.Commit(t.Context(), r.batch()); err != nil {
		t.Fatal(err)
	}
	byBatch := view(t, r.table.Name)
	program(t, "", "delete", "table", "inet", r.table.Name)
	if d := cmp.Diff(byText, byBatch); d != "" {
		t.Errorf("by text (-), by batch (+):\n%s", d)
	}
	program(t, listing, "-f", "-")
	if d := cmp.Diff(byText, view(t, r.table.Name)); d != "" {
		t.Errorf("by text (-), by its listing (+):\n%s", d)
	}
	program(t, "", "delete", "table", "inet", r.table.Name)
}

func (r *ruleset) text(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	err := r.table.Write(&b, r.sets, r.chains, func(set string) iter.Seq[*nft.Element] {
		return func(yield func(*nft.Element) bool) {
			for i := range r.elements[set] {
				if !yield(&r.elements[set][i]) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// passing is what passes while one looks.
var passing = regexp.MustCompile(`expires \d+[\dhms]*|"expires": \d+|"handle": \d+|__set\d+|# handle \d+`)

// view is all that nft tells of a table: the listing, the same as JSON, and the expressions of rules.
func view(t *testing.T, table string) string {
	t.Helper()
	all := program(t, "", "list", "table", "inet", table) +
		strings.ReplaceAll(program(t, "", "-j", "list", "table", "inet", table), ", {", ",\n{")
	for line := range strings.Lines(program(t, "", "--debug=netlink", "list", "table", "inet", table)) {
		// nft swaps the bytes of protocols, of which there is one, before it looks into a set with ranges.
		if strings.HasPrefix(line, "  [") && !strings.Contains(line, "byteorder") {
			all += line
		}
	}
	return passing.ReplaceAllString(all, "…")
}

// program runs nft.
func program(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nft", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("nft %s (Debian package nftables): %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}
