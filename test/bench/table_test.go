package bench

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/iptexec"
)

// cost is what something took.
type cost struct {
	wall, cpu time.Duration
	peak      int // bytes of memory, instead of times
}

// measure takes the time of f, and that which this process and the programs that it waited for had on processors.
func measure(b *testing.B, f func() error) cost {
	b.Helper()
	runtime.GC() // what was before shall not count
	cpu, begin := used(b), time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return cost{wall: time.Since(begin), cpu: used(b) - cpu}
}

func used(b *testing.B) (total time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return total
}

// table has a row for each thing measured and columns for each variant.
type table struct {
	variant iptexec.Variant
	bare    cost
	names   []string
	cells   map[string]map[iptexec.Variant]string
}

func (t *table) begin(v iptexec.Variant) { t.variant, t.bare = v, cost{} }

// add enters what something took, and how many times what the bare restore took.
func (t *table) add(what string, c cost) cost {
	if t.cells == nil {
		t.cells = map[string]map[iptexec.Variant]string{}
	}
	if t.cells[what] == nil {
		t.names, t.cells[what] = append(t.names, what), map[iptexec.Variant]string{}
	}
	cell := fmt.Sprintf("%.2f | %.2f | %.3f", c.cpu.Seconds(), c.wall.Seconds(), c.cpu.Seconds()/cmp.Or(t.bare, c).cpu.Seconds())
	if c.peak > 0 {
		cell = fmt.Sprintf("%d MiB | |", c.peak>>20)
	}
	t.cells[what][t.variant] = cell
	fmt.Printf("%s: %s: %s\n", t.variant, what, cell)
	return c
}

// String is the table in Markdown.
func (t *table) String() string {
	var text strings.Builder
	text.WriteString("| | nft: CPU s | elapsed s | ÷ bare | legacy: CPU s | elapsed s | ÷ bare |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, name := range t.names {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", name, cmp.Or(t.cells[name][iptexec.NFT], "| |"), cmp.Or(t.cells[name][iptexec.Legacy], "| |"))
	}
	return text.String()
}

// The marks in docs/benchmarks.md between which the result is.
const (
	beginMark = "<!-- result: begin, written by make bench-docs -->\n"
	endMark   = "<!-- result: end -->\n"
)

// save puts the table, and the machine it is of, into the docs.
func (t *table) save(b *testing.B) {
	b.Helper()
	path := filepath.Join("..", "..", "docs", "benchmarks.md")
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), beginMark)
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok1 || !ok2 {
		b.Fatalf("%s has no place for a result", path)
	}
	result := fmt.Sprintf("%d Services with %d endpoints each; %s.\n\n%s", *services, *endpoints, machine(b), t)
	if err := os.WriteFile(path, []byte(before+beginMark+result+endMark+after), 0o644); err != nil {
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
