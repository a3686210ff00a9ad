package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/kernel/iptexec"
)

// publish prints a result and, if asked to, puts it into the docs between the marks of that name.
func publish(b *testing.B, name, result string) {
	b.Helper()
	fmt.Printf("\n%s", result)
	if !*update {
		return
	}
	path := filepath.Join("..", "..", "docs", "benchmarks.md")
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin, written by make bench-docs -->\n", "<!-- "+name+": end -->\n"
	before, rest, ok1 := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		b.Fatalf("%s has no place for the result %q", path, name)
	}
	if err := os.WriteFile(path, []byte(before+begin+result+end+after), 0o644); err != nil {
		b.Fatal(err)
	}
}

// machine is what the figures depend on.
func machine(b *testing.B) string {
	b.Helper()
	var kernel syscall.Utsname
	if err := syscall.Uname(&kernel); err != nil {
		b.Fatal(err)
	}
	release := ""
	for _, c := range kernel.Release {
		if c == 0 {
			break
		}
		release += string(rune(c))
	}
	tools, err := iptexec.Find(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	cpu := "a processor that does not tell its name"
	info, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(string(info), "model name\t: "); ok {
		cpu, _, _ = strings.Cut(rest, "\n")
	}
	return fmt.Sprintf("%d × %s, Linux %s, iptables %s, %s", runtime.NumCPU(), cpu, release, tools.Version, runtime.Version())
}

// grid is a table in Markdown whose cells, but for those of the first column, are numbers.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) {
	g.rows = append(g.rows, cells)
	fmt.Println(strings.Join(cells, " | "))
}

func (g *grid) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s |\n|---%s|\n", strings.Join(g.head, " | "), strings.Repeat("|--:", len(g.head)-1))
	for _, r := range g.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(r, " | "))
	}
	return text.String()
}
