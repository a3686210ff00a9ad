package figures

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// Grid is a table in Markdown whose cells, but for those of the first column, are numbers.
type Grid struct {
	Head []string
	rows [][]string
}

// Add adds a row, and prints it for whoever waits.
func (g *Grid) Add(cells ...string) {
	g.rows = append(g.rows, cells)
	fmt.Println(strings.Join(cells, " | "))
}

// String is the table in Markdown.
func (g *Grid) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s |\n|---%s|\n", strings.Join(g.Head, " | "), strings.Repeat("|--:", len(g.Head)-1))
	for _, r := range g.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(r, " | "))
	}
	return text.String()
}

// Publish prints a result and, if update is set, puts it into a document between the marks of that name.
func Publish(t testing.TB, document, name, result string, update bool) {
	t.Helper()
	fmt.Printf("\n%s", result)
	if !update {
		return
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile("(?s)(<!-- " + regexp.QuoteMeta(name) + ": begin, [^\n]*-->\n).*(<!-- " + regexp.QuoteMeta(name) + ": end -->\n)")
	at := place.FindSubmatchIndex(text)
	if at == nil {
		t.Fatalf("%s has no place for the result %q", document, name)
	}
	written := string(text[:at[3]]) + result + string(text[at[4]:])
	if err := os.WriteFile(document, []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Machine is what all figures depend on: processors, kernel and Go.
func Machine(t testing.TB) string {
	t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	cpu := "a processor that does not tell its name"
	info, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(info), "model name\t: "); ok {
		cpu, _, _ = strings.Cut(rest, "\n")
	}
	return fmt.Sprintf("%d × %s, Linux %s, %s", runtime.NumCPU(), cpu, strings.TrimSpace(string(release)), runtime.Version())
}
