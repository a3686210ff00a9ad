package iptables

import (
	"os"
	"strings"
	"testing"

	"sluice/internal/testkit/golden"
)

// TestReadmeExcerpt keeps the rules in README.md equal to those that are compiled.
func TestReadmeExcerpt(t *testing.T) { golden.Excerpt(t, "README.md", serviceRules(t)) }

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
