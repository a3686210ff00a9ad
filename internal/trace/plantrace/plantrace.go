// Package plantrace answers what happens to a packet from the plan alone, in words. It is what the rules of every
// backend are held against.
//
// Invariant: verdict and endpoints are those of [plan.Plan.Decide]; the steps only say why.
package plantrace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// Trace tells what p decides on the first packet of a new connection.
func Trace(p *plan.Plan, pkt plan.Packet) trace.Result {
	d := p.Decide(pkt)
	r := trace.Result{Verdict: verdict(d.Action), Endpoints: []trace.Endpoint{}, Steps: []trace.Step{}}
	for _, t := range d.Targets {
		r.Endpoints = append(r.Endpoints, trace.Endpoint{
			Address: t.AddrPort, Probability: t.Share, Masquerade: t.Masquerade,
		})
	}
	trace.SortEndpoints(r.Endpoints)
	says := func(at, format string, args ...any) {
		r.Steps = append(r.Steps, trace.Step{At: at, Says: fmt.Sprintf(format, args...)})
	}
	says("plan: client", "%s %s", pkt.From, client(&p.Node, pkt, d.Client))
	if d.Port == nil {
		says("plan: frontend", "%s", noFrontend(p, pkt, d.Guard))
		return r
	}
	says("plan: frontend", "%s/%s is the %s of Service %s", pkt.To, pkt.Protocol, d.Frontend.Kind, d.Port.ID)
	if d.NotAllowed {
		says("plan: source ranges", "%s is in none of %s, which this address answers", pkt.From, join(d.Port.Sources))
		return r
	}
	says("plan: endpoints", "%s", route(d))
	if d.Action == plan.Forward {
		says("plan: choice", "%s", choice(d))
		says("plan: source", "%s", source(d, pkt.From))
	}
	return r
}

func verdict(a plan.Action) trace.Verdict {
	return [...]trace.Verdict{
		plan.Unhandled: trace.Unhandled, plan.Forward: trace.Forward, plan.Reject: trace.Reject, plan.Drop: trace.Drop,
	}[a]
}

func client(n *plan.Node, pkt plan.Packet, c plan.Client) string {
	how := "comes in from the network"
	if pkt.Via == plan.ViaLocal {
		how = "is sent by a process on this node"
	} else if pkt.Interface != "" {
		how += " by " + pkt.Interface
	}
	switch {
	case c == plan.ClientPod:
		return how + ": it counts as a pod"
	case c == plan.ClientHost:
		return how + ": the address is this node's"
	case !n.Detect[0].Implemented() && !n.Detect[1].Implemented():
		return how + ": an outside client; nothing is configured to tell pods by"
	}
	return how + ": an outside client"
}

// noFrontend says why a packet is left alone, or refused, where nobody answers.
func noFrontend(p *plan.Plan, pkt plan.Packet, guard plan.Guard) string {
	to := pkt.To.Addr()
	switch {
	case guard == plan.GuardPort:
		return fmt.Sprintf("%s is a cluster IP, and no Service has %d/%s there: the client is told at once", to, pkt.To.Port(), pkt.Protocol)
	case guard == plan.GuardRange:
		return fmt.Sprintf("%s is an address for Services (of %s), and no Service has it: the packet is dropped", to, join(p.Node.ServiceCIDRs[model.FamilyOf(to)]))
	case pkt.Via == plan.ViaForward && to.IsLoopback():
		return to.String() + " is a loopback address, and the packet comes from outside: it is dropped"
	case p.Node.IsLocal(to):
		return fmt.Sprintf("%s/%s is no Service's; the address is this node's, so the packet goes to a process here", pkt.To, pkt.Protocol)
	}
	return fmt.Sprintf("%s/%s is no Service's; routing takes the packet", pkt.To, pkt.Protocol)
}

// route says which endpoints a kind of client may have.
func route(d plan.Decision) string {
	policy := "internalTrafficPolicy"
	if d.Frontend.Kind != plan.ClusterIP {
		policy = "externalTrafficPolicy"
	}
	switch {
	case d.Action == plan.Reject:
		return "the Service has no endpoints: the client is told at once"
	case d.Action == plan.Drop:
		return policy + " is Local, and the Service's endpoints are on other nodes: the packet is dropped"
	case d.Route.List == plan.ListLocal:
		return fmt.Sprintf("%s is Local: %s on this node", policy, count(len(d.Targets)))
	}
	return fmt.Sprintf("%s of the Service", count(len(d.Targets)))
}

func choice(d plan.Decision) string {
	how := "at random, each as likely as the others"
	switch uneven := weighted(d.Targets); {
	case d.Port.Balancing == model.BalanceRoundRobin && uneven:
		how = "round-robin, with turns by weight"
	case d.Port.Balancing == model.BalanceRoundRobin:
		how = "round-robin"
	case uneven:
		how = "at random, by weight"
	}
	if d.Port.Affinity > 0 {
		how += fmt.Sprintf("; a client keeps its endpoint for %s", d.Port.Affinity)
	}
	return how
}

// weighted reports whether the targets' shares differ.
func weighted(targets []plan.Target) bool {
	return slices.ContainsFunc(targets, func(t plan.Target) bool { return t.Weight != targets[0].Weight })
}

func source(d plan.Decision, from netip.Addr) string {
	rewritten := 0
	for _, t := range d.Targets {
		if t.Masquerade {
			rewritten++
		}
	}
	switch {
	case rewritten == 0:
		return "the endpoint sees the client's address"
	case rewritten == len(d.Targets):
		return "the endpoint sees an address of the node, so that replies come back this way"
	case d.Route.Masquerade:
		return "endpoints elsewhere see an address of the node, so that replies come back this way; one on the node itself sees the client's"
	}
	return fmt.Sprintf("the endpoint sees the client's address, but %s the node's, as it would answer itself", from)
}

func count(n int) string {
	if n == 1 {
		return "the one endpoint"
	}
	return fmt.Sprintf("%d endpoints", n)
}

func join(ps []netip.Prefix) string {
	var texts []string
	for _, p := range ps {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}
