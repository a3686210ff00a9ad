package ipvs

import (
	"context"
	"net/netip"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// DeviceName is the interface that has the Services' addresses. It is kube-proxy's name, which other programs of a cluster
// look for.
const DeviceName = "kube-ipvs0"

// Options are what is this mode's own to choose. The zero value is kube-proxy's.
type Options struct {
	// Scheduler spreads the connections of Services that do not choose one. Empty: rr.
	Scheduler string
	// ExcludeCIDRs are ranges where virtual servers that the plan does not have are let alone.
	ExcludeCIDRs []netip.Prefix
	// TCPTimeout, TCPFinTimeout and UDPTimeout are how long the kernel remembers a connection after its last packet, in
	// whole seconds; 0: as it is.
	TCPTimeout, TCPFinTimeout, UDPTimeout time.Duration
	// StrictARP has interfaces of the node answer ARP for addresses of their own alone, and not for those of the device.
	StrictARP bool
	// NoIPv6 leaves IPv6 out, because this machine has it switched off.
	NoIPv6 bool
}

// Delivery is what the Rulesets of [Deps].Rules are: rules that let packets to virtual servers be, instead of sending them
// to endpoints.
type Delivery interface {
	backend.Ruleset
	// Mark is the firewall mark, never 0, by which the rules send the clients outside of a Service port's external
	// frontends to a virtual server of their own, with the list that External[plan.ClientOutside] names. It is not ok if
	// they are treated as pods are. It changes with updates alone, and when the Ruleset is adopted; see [Adopter].
	Mark(plan.PortID) (mark uint32, ok bool)
	// TraceBalanced is Trace by way of virtual servers: it asks pick for the endpoints of the one at an address, or of a
	// mark that is not 0. Not ok: there is no such virtual server.
	TraceBalanced(pkt plan.Packet, pick func(to netip.AddrPort, protocol model.Protocol, mark uint32) ([]plan.Endpoint, bool)) trace.Result
}

// Omitter is a Delivery that may have no rules for a Service port, so that nothing keeps clients from what it denies them.
type Omitter interface {
	// Omitted are these Service ports, each of which the mode's Apply refuses. They change as marks do.
	Omitted() []plan.PortID
}

// Adopter is a mode whose Rulesets take on marks that the kernel has. Those are to be known before the rules are applied,
// since virtual servers come first.
type Adopter interface {
	// Adopt has a Ruleset take them on, if that was not done before. It writes nothing.
	Adopt(ctx context.Context, r backend.Ruleset) error
}
