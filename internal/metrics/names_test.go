package metrics

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What Sluice has in each mode is what docs/metrics.md says, and the other way round.
func TestDocsListAllMetrics(t *testing.T) {
	for _, mode := range []string{"iptables", "nftables", "ipvs", "userspace"} {
		want := map[string]string{}
		for _, row := range table(t, "## All metrics") {
			if modes := row[3]; modes == "all" || slices.Contains(strings.Split(modes, ", "), mode) {
				want[name(row)] = row[1] + " " + row[2]
			}
		}
		got := map[string]string{}
		for name, f := range families(t, used(mode)) {
			if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
				got[name] = f.kind + " " + strings.Join(f.labels, ", ")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-docs +metrics):\n%s", mode, diff)
		}
	}
}

// Every metric of kube-proxy is there with its type and labels in its modes, or docs/metrics.md says why it is not.
func TestKubeProxysMetrics(t *testing.T) {
	absent := map[string]bool{}
	for _, row := range table(t, "## kube-proxy's that Sluice does not have") {
		absent[name(row)] = true
	}
	for _, mode := range []string{"iptables", "nftables"} {
		got := families(t, used(mode))
		for line := range strings.Lines(read(t, "testdata/kube-proxy.txt")) {
			words := strings.Fields(line)
			f, ok := got[words[0]]
			of := words[2] == "all" || slices.Contains(strings.Split(words[2], ","), mode)
			switch {
			case ok == absent[words[0]] && ok, ok && !of:
				t.Errorf("%s has %s", mode, words[0])
			case !ok && of && !absent[words[0]]:
				t.Errorf("%s has no %s", mode, words[0])
			case ok && (f.kind != words[1] || !slices.Equal(f.labels, words[3:])):
				t.Errorf("%s: %s is %v, want %v", mode, words[0], f, words)
			}
			delete(got, words[0])
		}
		for name := range maps.Keys(got) {
			if strings.HasPrefix(name, "kubeproxy_") {
				t.Errorf("kube-proxy has no %s in mode %s", name, mode)
			}
		}
	}
}

// table has the rows of the table below a heading, by cell.
func table(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "../../docs/metrics.md"), heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, line := range regexp.MustCompile("(?m)^\\| `.*\\|$").FindAllString(text, -1) {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("%s has %d rows", heading, len(rows))
	}
	return rows
}

func name(row []string) string { return strings.Trim(row[0], "`") }

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
