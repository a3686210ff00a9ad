package iptables

import (
	"fmt"
	"slices"
)

const (
	servicesComment   = "kubernetes service portals"
	externalComment   = "kubernetes externally-visible service portals"
	forwardingComment = "kubernetes forwarding rules"
)

// jump is a rule of ours in a chain that is not.
type jump struct {
	table Table
	from  string
	rule  string // as a line of chain.text
}

// jumps are all of ours, those of one chain in the order that they are to have among themselves.
var jumps = []jump{
	newJump(Filter, chainInput, "NEW", "kubernetes load balancer firewall", chainProxyFirewall),
	newJump(Filter, chainInput, "", "kubernetes health check service ports", chainNodePorts),
	newJump(Filter, chainInput, "NEW", externalComment, chainExternal),
	newJump(Filter, chainForward, "NEW", "kubernetes load balancer firewall", chainProxyFirewall),
	newJump(Filter, chainForward, "", forwardingComment, chainForwarding),
	newJump(Filter, chainForward, "NEW", servicesComment, chainServices),
	newJump(Filter, chainForward, "NEW", externalComment, chainExternal),
	newJump(Filter, chainOutput, "NEW", "kubernetes load balancer firewall", chainProxyFirewall),
	newJump(Filter, chainOutput, "NEW", servicesComment, chainServices),
	newJump(Filter, chainOutput, "NEW", externalComment, chainExternal),
	newJump(Nat, chainPrerouting, "", servicesComment, chainServices),
	newJump(Nat, chainOutput, "", servicesComment, chainServices),
	newJump(Nat, chainPostrouting, "", "kubernetes postrouting rules", chainMasquerade),
}

// firewallJumps lead to KUBE-FIREWALL. kubelet makes the same ones.
var firewallJumps = []jump{
	newJump(Filter, chainInput, "", "", chainFirewall),
	newJump(Filter, chainOutput, "", "", chainFirewall),
}

// newJump makes a jump for connections in one state; empty: any. The state comes before the comment, as kube-proxy
// has it.
func newJump(t Table, from, state, comment, to string) jump {
	rule := "-A " + from
	if state != "" {
		rule += " -m conntrack --ctstate " + state
	}
	if comment != "" {
		rule += " -m comment --comment " + quote(comment)
	}
	return jump{t, from, rule + " -j " + to}
}

// String names the jump in messages.
func (j jump) String() string {
	return fmt.Sprintf("%s %s → %s", j.table, j.from, targetOf(j.rule))
}

// is reports whether a line is this jump.
func (j jump) is(line string) bool { return sameLine(j.rule, line) }

// kernelChains are those in which we have jumps.
var kernelChains = [...]string{chainInput, chainForward, chainOutput, chainPrerouting, chainPostrouting}

// jumpsFrom are our jumps in one chain.
func jumpsFrom(t Table, from string) (js []jump) {
	for _, j := range jumps {
		if j.table == t && j.from == from {
			js = append(js, j)
		}
	}
	return js
}

// repairJumps finds the edits that put each of our jumps into its chain once, in order. Where they are not, all of
// one chain are put where the first of them was, so that they keep their place among foreign rules; kube-proxy, whose
// jumps these may be, does not look at order again.
func repairJumps(t Table, have map[string]string) (edits []edit) {
	for _, from := range kernelChains {
		if want := jumpsFrom(t, from); len(want) > 0 {
			edits = append(edits, repair(want, lines(have[from]))...)
		}
	}
	return edits
}

func repair(want []jump, have []string) (edits []edit) {
	var found []jump
	first := 0 // where the first of ours is, from 0
	for at, l := range have {
		i := slices.IndexFunc(want, func(j jump) bool { return j.is(l) })
		if i < 0 {
			continue
		}
		if len(found) == 0 {
			first = at
		}
		found = append(found, want[i])
		edits = append(edits, edit{deletion, jump{want[i].table, want[i].from, l}})
	}
	if slices.Equal(found, want) {
		return nil
	}
	for i, j := range want {
		edits = append(edits, edit{first + i + 1, j})
	}
	return edits
}

// targetOf is where a line leads; empty if nowhere.
func targetOf(text string) string {
	parsed, err := ruleOf(text).rule.Parse()
	if err != nil {
		return ""
	}
	return parsed.Target
}
