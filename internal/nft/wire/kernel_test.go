package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/nstest"
)

func TestProxy(t *testing.T) { same(t, proxy()) }

func TestForms(t *testing.T) { same(t, forms()) }

// same loads a ruleset as text by nft and then as a batch, and compares what nft makes of the two. What nft lists of it
// must load again as the same.
func same(t *testing.T, r *ruleset) {
	t.Helper()
	nstest.Require(t)
	program(t, r.text(t), "-f", "-")
	listing := program(t, "", "list", "table", "inet", r.table.Name)
	byText, sets := view(t, r.table.Name)+expressions(t, r.table.Name), rawSets(t)
	program(t, "", "delete", "table", "inet", r.table.Name)
	commit(t, r.batch())
	compare(t, "by text (-), by batch (+)", byText, view(t, r.table.Name)+expressions(t, r.table.Name))
	compare(t, "sets by text (-), by batch (+)", sets, rawSets(t))
	byBatch := view(t, r.table.Name)
	program(t, "", "delete", "table", "inet", r.table.Name)
	program(t, listing, "-f", "-")
	compare(t, "by batch (-), by its listing (+)", byBatch, view(t, r.table.Name))
	program(t, "", "delete", "table", "inet", r.table.Name)
}

func compare(t *testing.T, what string, a, b any) {
	t.Helper()
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("%s:\n%s", what, d)
	}
}

func open(t *testing.T) *nfnl.Conn {
	t.Helper()
	conn, err := nfnl.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func commit(t *testing.T, batch []byte) {
	t.Helper()
	if err := open(t).Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// countOfElements is an attribute of newer kernels. nft adds an end of no range to each set with ranges.
var countOfElements = regexp.MustCompile(`(?s:\x08\x00\x14\x00....)`)

// rawSets is what the kernel has of each named set, user data included, but for handles and the header, which has the generation.
func rawSets(t *testing.T) map[string]string {
	t.Helper()
	sets := map[string]string{}
	kind, request := wire.ListSets("sluice")
	err := open(t).Dump(t.Context(), kind, request, func(_ uint16, data []byte) error {
		s, err := wire.DecodeSet(data)
		if handle := binary.BigEndian.AppendUint64(nil, s.Handle); !s.Anonymous() {
			text := bytes.Replace(data[4:], handle, nil, 1)
			sets[s.Name] = fmt.Sprintf("%q", countOfElements.ReplaceAll(text, nil))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sets
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

// view is all that nft tells of a table: the listing, and the same as JSON.
func view(t *testing.T, table string) string {
	t.Helper()
	all := program(t, "", "list", "table", "inet", table) +
		strings.ReplaceAll(program(t, "", "-j", "list", "table", "inet", table), ", {", ",\n{")
	return passing.ReplaceAllString(all, "…")
}

// expressions are those of all rules.
func expressions(t *testing.T, table string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(program(t, "", "--debug=netlink", "list", "table", "inet", table)) {
		// nft swaps the bytes of protocols, of which there is one, before it looks into a set with ranges.
		if strings.HasPrefix(line, "  [") && !strings.Contains(line, "byteorder") {
			b.WriteString(line)
		}
	}
	text := passing.ReplaceAllString(b.String(), "…")
	// Of a key of 20 bytes, nft overwrites the last word with the data of the element.
	text = strings.ReplaceAll(text, "[ meta load priority => reg 3 ]", "[ meta load priority => reg 2 ]")
	return strings.ReplaceAll(text, "sreg_data 3", "sreg_data 2")
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
