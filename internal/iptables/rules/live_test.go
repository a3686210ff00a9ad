package rules

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

var update = flag.Bool("update", false, "write testdata/*.saved from what this kernel and these programs print")

// TestMain gives the tests a network of their own, except for fuzzing's worker processes: they need none, and talk to
// their parent over file descriptors that a process in between would not pass on.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzzworker").Value.String() == "true" {
		os.Exit(m.Run())
	}
	nstest.Main(m)
}

var families = []struct{ file, program string }{{"ipv4", "iptables"}, {"ipv6", "ip6tables"}}

var variants = []string{"nft", "legacy"}

// TestSavedSpelling compares the rules of testdata with what both variants of 1.8.9 saved of them.
func TestSavedSpelling(t *testing.T) {
	for _, f := range families {
		for _, variant := range variants {
			t.Run(f.file+"-"+variant, func(t *testing.T) {
				saved := parseFile(t, f.file+"-"+variant+".saved")
				compare(t, parseFile(t, f.file+".rules"), saved)
			})
		}
	}
}

// TestLiveSpelling loads the rules into this kernel and compares them with what the programs of this machine save.
func TestLiveSpelling(t *testing.T) {
	nstest.Require(t)
	for _, f := range families {
		for _, variant := range variants {
			t.Run(f.file+"-"+variant, func(t *testing.T) {
				text := reload(t, f.program+"-"+variant, f.file+".rules")
				if *update {
					write(t, f.file+"-"+variant+".saved", text)
				}
				saved, err := Parse(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				compare(t, parseFile(t, f.file+".rules"), saved)
			})
		}
	}
}

// reload gives a file to the program's restore in a namespace of its own, and returns what its save prints.
func reload(t *testing.T, program, file string) []byte {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	restore := ns.Command(t.Context(), program+"-restore")
	restore.Stdin = bytes.NewReader(read(t, file))
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%s-restore: %v\n%s", program, err, out)
	}
	out, err := ns.Command(t.Context(), program+"-save").Output()
	if err != nil {
		t.Fatalf("%s-save: %v", program, err)
	}
	return out
}

// compare wants the same rules, in the same order, in every chain of written that has any.
func compare(t *testing.T, written, saved *Ruleset) {
	t.Helper()
	for _, table := range written.Tables {
		for _, c := range table.Chains {
			got := saved.Table(table.Name).Chain(c.Name)
			if got == nil || len(got.Rules) != len(c.Rules) {
				t.Errorf("%s %s: rules are missing", table.Name, c.Name)
				continue
			}
			for i, r := range c.Rules {
				if !Equal(r, got.Rules[i]) {
					t.Errorf("%s %s:\nwritten %s\n  saved %s\n normal %s\n    and %s",
						table.Name, c.Name, r, got.Rules[i], r.Normal(), got.Rules[i].Normal())
				}
			}
		}
	}
}

func parseFile(t *testing.T, name string) *Ruleset {
	t.Helper()
	rs, err := Parse(bytes.NewReader(read(t, name)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return rs
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write keeps the text without what differs from run to run: the time and the counters.
func write(t *testing.T, name string, text []byte) {
	t.Helper()
	text = regexp.MustCompile(`(?m) on \w{3} \w{3} .*$`).ReplaceAll(text, nil)
	text = regexp.MustCompile(`\[\d+:\d+\]`).ReplaceAll(text, []byte("[0:0]"))
	if err := os.WriteFile(filepath.Join("testdata", name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func restoreText(rules ...Rule) string {
	var b strings.Builder
	b.WriteString("*nat\n:A - [0:0]\n")
	for _, r := range rules {
		b.WriteString(r.Line("A") + "\n")
	}
	return b.String() + "COMMIT\n"
}
