package iptables

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadmeExcerpt keeps the rules in README.md equal to those that are compiled.
func TestReadmeExcerpt(t *testing.T) {
	const begin, end = "<!-- begin excerpt -->\n", "<!-- end excerpt -->\n"
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	excerpt, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal("README.md has no excerpt")
	}
	want := "\n" + serviceRules(t) + "\n"
	if *update {
		if err := os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, excerpt); diff != "" {
		t.Errorf("README.md differs (-want +got); go test -update writes it anew:\n%s", diff)
	}
}

// serviceRules are the rules that lead to the Service of a golden file and those of its own, indented.
func serviceRules(t *testing.T) (text string) {
	t.Helper()
	golden, err := os.ReadFile("testdata/load-balancer-local.ipv4.rules")
	if err != nil {
		t.Fatal(err)
	}
	_, nat, _ := strings.Cut(string(golden), "*nat\n")
	for _, l := range lines(nat) {
		if strings.HasPrefix(l, "-A KUBE-") && strings.Contains(l, "default/web:http") {
			text += "    " + l + "\n"
		}
	}
	return text
}
