package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice/internal/testkit/scenario"
)

var update = flag.Bool("update", false, "write the table in README.md again")

const (
	readme = "../../README.md"
	begin  = "<!-- support table: begin, written by go test ./test/conformance -update -->\n"
	end    = "<!-- support table: end -->\n"
)

// README's table says yes where TestConformance asks a mode and no way of that mode is excused.
func TestSupportTable(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("README.md has no lines %q and %q", begin, end)
	}
	want := supportTable(scenario.LoadAll(t, "testdata"), scenario.Columns())
	if old == want {
		return
	}
	if !*update {
		t.Fatalf("README's support table is stale; run: go test ./test/conformance -run TestSupportTable -update\nwant:\n%s", want)
	}
	if err := os.WriteFile(readme, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// supportTable has a row for each scenario and a column for each mode.
func supportTable(rows []scenario.Scenario, columns []scenario.Column) string {
	modes := modesOf(columns)
	var notes []string
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(modes, " | "), strings.Repeat("---|", len(modes)))
	for _, s := range rows {
		fmt.Fprintf(&b, "| %s |", s.Title())
		for _, m := range modes {
			fmt.Fprintf(&b, " %s |", cell(s, m, columns, &notes))
		}
		b.WriteString("\n")
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for i, n := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}

// cell is "yes", or the number of the note that says why not.
func cell(s scenario.Scenario, mode string, columns []scenario.Column, notes *[]string) string {
	for _, c := range columns {
		reason, excused := s.Excuse[c.Name]
		if c.Mode != mode || !excused {
			continue
		}
		at := slices.Index(*notes, reason)
		if at < 0 {
			at = len(*notes)
			*notes = append(*notes, reason)
		}
		return fmt.Sprintf("no (%d)", at+1)
	}
	return "yes"
}

func modesOf(columns []scenario.Column) (modes []string) {
	for _, c := range columns {
		if c.Mode != "" && !slices.Contains(modes, c.Mode) {
			modes = append(modes, c.Mode)
		}
	}
	return modes
}
