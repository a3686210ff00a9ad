package userspace

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Why a Service port is not proxied. Its clients are refused at once.
var (
	// ErrSCTP occurs for every Service port of SCTP.
	ErrSCTP = errors.New("the proxy takes over no connections of SCTP, which bind several addresses of both ends; the other modes do")
	// ErrNoAddress occurs where this node is not known to have an address of the Service port's family.
	ErrNoAddress = errors.New("the proxy has no address to listen at")
)

// throughProxy is a Service port as the inner mode has it: instead of the endpoints of each list, it leads to the proxy's
// port for that list. A zero one stands for a list that nobody is sent to.
//
// The source stays, since the proxy is to see who the client is; that the endpoints see this node comes by itself. So
// does affinity, which is the proxy's: the inner mode has one endpoint to choose from.
func throughProxy(p *plan.Port, cluster, local netip.AddrPort) *plan.Port {
	m := *p
	m.Internal, m.External = unmasked(p.Internal), unmasked(p.External)
	// What the list of all nodes leads to is no endpoint of this node, though the proxy is here: who is held to this
	// node's endpoints from now on does not keep it.
	m.Cluster, m.Local, m.Draining = proxy(cluster, false), proxy(local, true), nil
	m.Affinity, m.Balancing, m.Scheduler, m.ProxyProtocol = 0, model.BalanceDefault, "", 0
	return &m
}

func proxy(at netip.AddrPort, local bool) []plan.Endpoint {
	if !at.IsValid() {
		return nil
	}
	return []plan.Endpoint{{AddrPort: at, Local: local, Weight: 1}}
}

func unmasked(a plan.Access) plan.Access {
	for i := range a {
		a[i].Masquerade = false
	}
	return a
}

// refusing is a Service port that cannot be proxied. Where some clients would be sent to an endpoint, all are told at once
// that there is none, also those that a policy would have dropped: no plan has both for one frontend, and so no mode.
func refusing(p *plan.Port) *plan.Port {
	m := throughProxy(p, netip.AddrPort{}, netip.AddrPort{})
	for _, access := range [...]*plan.Access{&m.Internal, &m.External} {
		if slices.ContainsFunc(access[:], func(r plan.Route) bool { return r.Action == plan.Forward }) {
			*access = plan.Access{{Action: plan.Reject}, {Action: plan.Reject}, {Action: plan.Reject}}
		}
	}
	return m
}

// nodeIP is where the proxy listens: the node's own address of a family. One that is on no interface here, as the
// addresses of some clouds are, is no use; then any other will do that is not of one link alone.
func nodeIP(n *plan.Node, f model.Family) netip.Addr {
	if primary := n.Primary[f]; primary.IsValid() && (n.IsLocal(primary) || len(n.Addresses) == 0) {
		return primary
	}
	for _, a := range n.Addresses {
		if model.FamilyOf(a) == f && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			return a
		}
	}
	return netip.Addr{}
}

// refusal tells why a Service port is not proxied, whatever ports are left.
func refusal(id plan.PortID, at netip.Addr) error {
	switch {
	case id.Protocol == model.SCTP:
		return ErrSCTP
	case !at.IsValid():
		return fmt.Errorf("%w: this node has none of %s", ErrNoAddress, id.Family)
	}
	return nil
}
