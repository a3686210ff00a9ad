package iptables

import (
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
)

const pingComment = "ping of cluster IPs"

// echoRequest matches what ping sends: the protocol, and its type.
var echoRequest = [2]rule{
	model.IPv4: {icmp: "icmp", match: "-m icmp --icmp-type 8"},
	model.IPv6: {icmp: "ipv6-icmp", match: "-m icmp6 --icmpv6-type 128"},
}

// pingTarget is where echo requests to cluster IPs are sent: an address of this node, which answers. It reports false if
// they are to go unanswered.
func (c *compiler) pingTarget() (target string, ok bool) {
	a := c.node.Primary[c.family]
	return "DNAT --to-destination " + a.String(), c.node.AnswerPing && a.IsValid()
}

// pingRule makes this node answer echo requests to a cluster IP. Each port of a Service brings the same one; see onePing.
func (b *portCompiler) pingRule(f plan.Frontend) {
	if target, ok := b.pingTarget(); ok && f.Kind == plan.ClusterIP {
		b.sections[natPing].add(rule{
			dst: host(f.Addr), icmp: echoRequest[b.family].icmp, comment: b.name + " " + words[f.Kind], target: target,
		})
	}
}

// pingJump leads echo requests from nat KUBE-SERVICES to the chain of cluster IPs that answer them, so that no other packet
// is compared with these.
func (c *compiler) pingJump() string {
	if _, ok := c.pingTarget(); !ok {
		return ""
	}
	text := chainText{chain: chainServices}
	jump := echoRequest[c.family]
	jump.comment, jump.target = pingComment, chainPing
	text.add(jump)
	return string(text.buf)
}

// onePing leaves out further rules for the same address.
func onePing(text string) string {
	var one strings.Builder
	seen := map[string]bool{}
	for _, l := range lines(text) {
		address, _, _ := strings.Cut(l, " -m comment")
		if !seen[address] {
			one.WriteString(l + "\n")
		}
		seen[address] = true
	}
	return one.String()
}
