package ipsets

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// shape is what the rules of a family depend on, besides the Options.
type shape struct {
	has                   [kinds]bool // sets with entries
	detect                plan.Detector
	masqueradeAll, guards bool
	nodePorts             string
	ranges                string
}

func (f *family) shapeOf(c *compiler) shape {
	s := shape{detect: c.node.Detect[f.family], masqueradeAll: c.node.MasqueradeAll, guards: c.node.GuardClusterIPs}
	for k := range kinds {
		s.has[k] = len(f.entries[k]) > 0
	}
	if serves := c.node.NodePorts[f.family]; !serves.All {
		s.nodePorts = fmt.Sprint(serves.Addresses)
	}
	if s.guards {
		s.ranges = fmt.Sprint(c.node.ServiceCIDRs[f.family])
	}
	return s
}

// writer writes the rules of a family.
type writer struct {
	*compiler
	shape
	rs    *rules.Ruleset
	chain *rules.Chain
}

// tables are the rules of a family: jumps ahead, then each chain.
func (c *compiler) tables(s shape) *rules.Ruleset {
	w := &writer{compiler: c, shape: s, rs: &rules.Ruleset{}}
	for _, name := range tableNames {
		t := w.rs.AddTable(name)
		for _, j := range jumps {
			if j.table == name {
				from := t.AddChain(j.from)
				from.Policy = "ACCEPT"
				from.Add(j.rule)
			}
		}
		for _, chain := range ownChains[name] {
			t.AddChain(chain)
		}
	}
	w.nat()
	w.filter()
	w.mangle()
	return w.rs
}

// in begins to write a chain.
func (w *writer) begin(table, chain string) { w.chain = w.rs.Table(table).AddChain(chain) }

func (w *writer) add(r rule) { w.chain.Add(r.text()) }

// addFor adds a rule for packets that a set has, if it has any at all.
func (w *writer) addFor(k kind, parts string, r rule) {
	if !w.has[k] {
		return
	}
	if r.comment == "" {
		r.comment = forms[k].comment
	}
	w.add(r.and(w.in(k, parts)))
}

// addForNodePorts adds a rule for each protocol and address of node ports that are in sets of a kind.
func (w *writer) addForNodePorts(k kind, r rule) {
	for _, p := range protocols {
		for _, m := range w.nodePortMatches() {
			m.src, m.in, m.target, m.proto = r.src, r.in, r.target, p.Lower()
			w.addFor(k.ofProtocol(p), partsOf(p), m.and(r.match...))
		}
	}
}

// addresses are the kinds of sets that have all frontends with an address of their own.
var addresses = [...]kind{loadBalancer, clusterIP, externalIP, externalIPLocal}

// loopbackRange is what a family calls itself.
var loopbackRange = [2]string{model.IPv4: "127.0.0.0/8", model.IPv6: "::1/128"}

// jump is a rule of ours in a chain that is not.
type jump struct {
	table, from string
	rule        rules.Rule
}

// jumps are all of ours, those of one chain in the order that they are to have among themselves.
var jumps = []jump{
	{"filter", chainInput, jumpTo(chainIPVSFilter, "kubernetes ipvs access filter")},
	{"filter", chainInput, jumpTo(chainProxyFirewall, "kube-proxy firewall rules")},
	{"filter", chainInput, jumpTo(chainRefuse, refuseComment, newConnections)},
	{"filter", chainInput, jumpTo(chainNodePort, "kubernetes health check rules")},
	{"filter", chainInput, jumpTo(chainAccept, "kubernetes service portals")},
	{"filter", chainForward, jumpTo(chainProxyFirewall, "kube-proxy firewall rules")},
	{"filter", chainForward, jumpTo(chainRefuse, refuseComment, newConnections)},
	{"filter", chainForward, jumpTo(chainForwarding, forwardingComment)},
	{"filter", chainOutput, jumpTo(chainIPVSOut, "kubernetes ipvs access filter")},
	{"nat", chainPrerouting, jumpTo(chainServices, "kubernetes service portals")},
	{"nat", chainOutput, jumpTo(chainServices, "kubernetes service portals")},
	{"nat", chainPostrouting, jumpTo(chainMasquerade, "kubernetes postrouting rules")},
	{"mangle", chainPrerouting, jumpTo(chainMarkOutside, "kubernetes clients outside")},
	{"mangle", chainOutput, jumpTo(chainProxyFirewall, "kube-proxy firewall rules")},
}

const (
	refuseComment     = "kubernetes services without endpoints"
	forwardingComment = "kubernetes forwarding rules"
)

func jumpTo(chain, comment string, match ...string) rules.Rule {
	return rule{comment: comment, match: match, target: chain}.text()
}

// String names the jump in messages.
func (j jump) String() string {
	words := strings.Fields(string(j.rule))
	return fmt.Sprintf("%s %s → %s", j.table, j.from, words[len(words)-1])
}

// jumpsFrom are our jumps in one chain.
func jumpsFrom(table, from string) (rs []rules.Rule) {
	for _, j := range jumps {
		if j.table == table && j.from == from {
			rs = append(rs, j.rule)
		}
	}
	return slices.Clip(rs)
}
