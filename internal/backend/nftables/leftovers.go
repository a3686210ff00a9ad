package nftables

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/internal/nft/wire"
)

// ofIPTables is a table that the program iptables-nft made, as far as chains of a Service proxy go.
type ofIPTables struct {
	family uint8
	name   string
	// own are the proxy's chains, and held those among them that rules of others lead to, which cannot go.
	own, held map[string]bool
	// jumps are the rules that lead from the kernel's chains to the proxy's.
	jumps []wire.Rule
	// guard is how KUBE-FIREWALL is, which kubelet may have as well.
	guard guardChain
}

type guardChain struct {
	exists bool
	rules  int
	// ours is set if one of the rules is the proxy's, and kubelet if that is at work.
	ours, kubelet bool
	// held is set if rules of others lead there, and needed if loopback addresses are routed still.
	held, needed bool
	jumps        []wire.Rule
}

func newOfIPTables(family uint8, name string) *ofIPTables {
	return &ofIPTables{family: family, name: name, own: map[string]bool{}, held: map[string]bool{}}
}

// String is like "table ip nat".
func (t *ofIPTables) String() string {
	return "table " + map[uint8]string{wire.FamilyIPv4: "ip", wire.FamilyIPv6: "ip6"}[t.family] + " " + t.name
}

const guardName = "KUBE-FIREWALL"

// guardComment is in the proxy's only rule there, and in the same rule of kubelet.
var guardComment = []byte("block incoming localnet connections")

// proxyChains are the chains with a fixed name that kube-proxy and the iptables mode make, by table.
var proxyChains = map[string][]string{
	"filter": {
		"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL", "KUBE-FORWARD",
		"KUBE-PROXY-CANARY",
	},
	"nat":    {"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ", "KUBE-CLUSTER-PING", "KUBE-PROXY-CANARY"},
	"mangle": {"KUBE-PROXY-CANARY"},
}

// portChains begin the names of the chains of single Service ports, which are in table nat.
var portChains = []string{"KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SEP-"}

// kubeletChains are in table mangle where kubelet is at work.
var kubeletChains = []string{"KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"}

// kernelChains are those where packets come in.
var kernelChains = []string{"INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"}

// isOwn reports whether a chain is the proxy's alone.
func (t *ofIPTables) isOwn(chain string) bool {
	return slices.Contains(proxyChains[t.name], chain) || t.name == "nat" &&
		slices.ContainsFunc(portChains, func(prefix string) bool { return strings.HasPrefix(chain, prefix) })
}

// addChain takes in a chain of any table of the family.
func (t *ofIPTables) addChain(table, name string) {
	switch {
	case table == "mangle" && slices.Contains(kubeletChains, name):
		t.guard.kubelet = true
	case table != t.name:
	case t.isOwn(name):
		t.own[name] = true
	case name == guardName && t.name == "filter":
		t.guard.exists = true
	}
}

// addRule takes in a rule of the table, which is in a message.
func (t *ofIPTables) addRule(r wire.Rule, message []byte) {
	fromKernel := slices.Contains(kernelChains, r.Chain)
	switch {
	case r.Chain == guardName:
		t.guard.rules++
		t.guard.ours = t.guard.ours || bytes.Contains(message, guardComment)
	case r.Target == guardName && fromKernel:
		t.guard.jumps = append(t.guard.jumps, r)
	case r.Target == guardName:
		t.guard.held = true
	case !t.own[r.Target] || t.own[r.Chain]:
	case fromKernel:
		t.jumps = append(t.jumps, r)
	default:
		t.held[r.Target] = true
	}
}

// goes reports whether KUBE-FIREWALL is the proxy's alone, and not needed.
func (g *guardChain) goes() bool {
	return g.exists && g.rules == 1 && g.ours && !g.kubelet && !g.held && !g.needed
}

// found tells what there is, "" for nothing.
func (t *ofIPTables) found() string {
	n := len(t.own)
	if t.guard.goes() {
		n++
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d chains of a Service proxy", t, n)
}

// append appends what removes the chains, and calls more between messages, so that it may send them before there are too
// many. Chains that are held are emptied.
func (t *ofIPTables) append(b *wire.Batch, more func() error) error {
	jumps, chains := t.jumps, sortedNames(t.own)
	if t.guard.goes() {
		jumps, chains = slices.Concat(jumps, t.guard.jumps), append(chains, guardName)
	}
	for _, r := range jumps {
		b.DeleteRule(r.Chain, r.Handle)
	}
	for _, name := range chains {
		b.FlushChain(name)
		if err := more(); err != nil {
			return err
		}
	}
	for _, name := range chains {
		if t.held[name] {
			continue
		}
		b.DeleteChain(name)
		if err := more(); err != nil {
			return err
		}
	}
	return nil
}

// forgetChains forgets what addChain took in.
func (t *ofIPTables) forgetChains() {
	clear(t.own)
	t.guard = guardChain{}
}

// forgetRules forgets what addRule took in.
func (t *ofIPTables) forgetRules() {
	t.held, t.jumps = map[string]bool{}, nil
	t.guard = guardChain{exists: t.guard.exists, kubelet: t.guard.kubelet}
}

// errHeld tells of chains that stay.
func (t *ofIPTables) errHeld() error {
	if len(t.held) == 0 {
		return nil
	}
	return fmt.Errorf("rules of others lead to these chains, which stay, emptied: %s", strings.Join(sortedNames(t.held), ", "))
}

func sortedNames(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
