package demo

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// about are the rules whose comment names a Service port.
func about(saved, port string) string {
	named := regexp.MustCompile(`(?m)^-A .*[ "]` + regexp.QuoteMeta(port) + `[ "].*\n`)
	return strings.Join(named.FindAllString(saved, -1), "")
}

// of are the rules of some chains.
func of(saved string, chains ...string) string {
	rule := regexp.MustCompile(`(?m)^-A (` + strings.Join(chains, "|") + `) .*\n`)
	return strings.Join(rule.FindAllString(saved, -1), "")
}

// sameRules compares without regard to the order in KUBE-SERVICES: a packet meets one rule for its destination there.
func sameRules(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.Lines(a)), slices.Sorted(strings.Lines(b)))
}

// ruleFor is the rule for a Service's address, as iptables-save prints it.
func ruleFor(saved, address string) string {
	at := netip.MustParseAddrPort(address)
	for l := range strings.Lines(saved) {
		if strings.HasPrefix(l, "-A KUBE-SERVICES ") && strings.Contains(l, "-d "+at.Addr().String()+"/32 ") {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

// linesWith are the lines that have a word.
func linesWith(text, word string) string {
	var found strings.Builder
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) {
			found.WriteString(l)
		}
	}
	return found.String()
}
