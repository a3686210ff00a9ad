package iptables

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// target is an endpoint with what is written about it more than once.
type target struct {
	plan.Endpoint
	address string // "10.0.0.1:80"
	chain   string
}

// targets are endpoints in the order in which they are written: kube-proxy's, by the address as text.
func targets(id plan.PortID, endpoints []plan.Endpoint) []target {
	ts := make([]target, 0, len(endpoints))
	for _, e := range endpoints {
		ts = append(ts, target{e, e.AddrPort.String(), endpointChain(id, e.AddrPort)})
	}
	slices.SortFunc(ts, func(a, b target) int { return strings.Compare(a.address, b.address) })
	return ts
}

// listRules make the chain of one list of endpoints. The clients of the ClusterIP begin here, so that the rule that
// masquerades them comes first.
func (b *portCompiler) listRules(l plan.List, ts []target) {
	text := chainText{chain: b.listChain(l)}
	if b.Internal[plan.ClientOutside].List == l {
		for _, f := range b.Frontends {
			if f.Kind == plan.ClusterIP {
				b.masqueradeInternal(&text, f)
			}
		}
	}
	if b.Affinity > 0 {
		b.affinityRules(&text, ts)
	}
	b.balanceRules(&text, ts)
	b.chains = append(b.chains, text.done())
}

// balanceRules send each connection to one of the endpoints: by chance, or in turn, with as many turns as weights say.
func (b *portCompiler) balanceRules(text *chainText, ts []target) {
	if b.Balancing == model.BalanceRoundRobin {
		ts = turns(ts)
	}
	rest := 0
	for _, t := range ts {
		rest += int(t.Weight)
	}
	for _, t := range ts {
		text.add(rule{comment: b.endpointComment(t), match: share(b.Balancing, int(t.Weight), rest), target: t.chain})
		rest -= int(t.Weight)
	}
}

// turns are the targets in the order of their turns, which weigh the same.
func turns(ts []target) []target {
	endpoints := make([]plan.Endpoint, len(ts))
	at := make(map[netip.AddrPort]int, len(ts))
	for i, t := range ts {
		endpoints[i], at[t.AddrPort] = t.Endpoint, i
	}
	spread := plan.Spread(endpoints)
	out := make([]target, len(spread))
	for i, e := range spread {
		out[i] = ts[at[e.AddrPort]]
		out[i].Weight = 1
	}
	return out
}

// affinityRules lead a client back to the endpoint whose list has it. Looking it up does not renew it; being sent to
// the endpoint does.
func (b *portCompiler) affinityRules(text *chainText, ts []target) {
	for _, t := range ts {
		text.add(rule{
			comment: b.endpointComment(t), target: t.chain,
			match: fmt.Sprintf("-m recent --rcheck --seconds %d --reap %s", b.Affinity/time.Second, b.clients(t)),
		})
	}
}

// clients names the list of the clients that an endpoint has.
func (b *portCompiler) clients(t target) string {
	mask := [2]string{model.IPv4: "255.255.255.255", model.IPv6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
	return "--name " + t.chain + " --mask " + mask[b.family] + " --rsource"
}

// endpointRules make the chain of one endpoint. One that connects to itself by the Service must be masqueraded, or it
// would answer itself directly.
func (b *portCompiler) endpointRules(t target) {
	comment := b.name
	if b.large {
		comment = ""
	}
	text := chainText{chain: t.chain}
	text.add(rule{src: host(t.Addr()), comment: comment, target: chainMark})
	dnat := rule{proto: b.ID.Protocol, comment: comment, target: "DNAT --to-destination " + t.address}
	if b.Affinity > 0 {
		dnat.match = "-m recent --set " + b.clients(t)
	}
	text.add(dnat)
	b.chains = append(b.chains, text.done())
}

func (b *portCompiler) endpointComment(t target) string {
	if b.large {
		return ""
	}
	return b.name + " -> " + t.address
}

// share matches weight out of rest of the connections that get as far as this rule.
func share(how model.Balancing, weight, rest int) string {
	switch {
	case weight == rest:
		return ""
	case how == model.BalanceRoundRobin:
		return fmt.Sprintf("-m statistic --mode nth --every %d --packet 0", rest)
	}
	return "-m statistic --mode random --probability " + probability(weight, rest)
}

// probability is weight/rest as the kernel keeps it, in 31 bits. What is written is then what is read back; of
// kube-proxy's ten digits the kernel makes nearly the same.
func probability(weight, rest int) string {
	return rules.Probability(uint32(math.Round(rules.One * float64(weight) / float64(rest))))
}
