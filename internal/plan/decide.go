package plan

import (
	"net/netip"

	"sluice/internal/model"
)

// Via is how a packet reaches the node's rules.
type Via uint8

// The ways.
const (
	// ViaForward: it comes in from the network.
	ViaForward Via = iota
	// ViaLocal: a process on the node sends it.
	ViaLocal
)

// String is the value of trace's flag --via.
func (v Via) String() string {
	if v == ViaLocal {
		return "local"
	}
	return "forward"
}

// Packet is the first packet of a new connection.
type Packet struct {
	From     netip.Addr
	To       netip.AddrPort
	Protocol model.Protocol
	Via      Via
	// Interface is the name of the one that it comes in by, where that matters; empty: unknown, or ViaLocal.
	Interface string
}

// Decision is what the plan says of a Packet.
type Decision struct {
	Action Action
	// Targets are the endpoints it may reach.
	Targets []Target
	Client  Client
	// Port and Frontend are what it hit; Port is nil if it is no frontend.
	Port     *Port
	Frontend Frontend
	Route    Route
	// NotAllowed is set where the frontend does not answer this source.
	NotAllowed bool
	// Guard is why a packet to no frontend is refused all the same.
	Guard Guard
}

// Target is an endpoint and whether it sees the node's address instead of the client's.
type Target struct {
	Endpoint
	Masquerade bool
	// Share is how many of all such connections it gets, from 0 to 1.
	Share float64
}

// Decide says what happens to a packet. It is the meaning that the rules of every backend must have.
func (p *Plan) Decide(pkt Packet) Decision {
	d := Decision{Client: p.Node.Client(pkt)}
	if pkt.Via == ViaForward && pkt.To.Addr().IsLoopback() {
		// A loopback address is nobody's business from outside. The kernel drops such a packet by itself, unless
		// route_localnet is set, as it is for node ports on localhost.
		d.Action = Drop
		return d
	}
	port, frontend, ok := p.Find(pkt.To, pkt.Protocol)
	if !ok {
		d.Guard = p.guard(pkt)
		d.Action = d.Guard.action()
		return d
	}
	d.Port, d.Frontend = port, frontend
	if !port.Allows(frontend, pkt.From) {
		d.Action, d.NotAllowed = Drop, true
		return d
	}
	d.Route = port.Access(frontend.Kind)[d.Client]
	d.Action = d.Route.Action
	if d.Action != Forward {
		return d
	}
	d.Targets = p.targets(pkt, d.Route, port.Endpoints(d.Route.List))
	return d
}

// targets are the endpoints of a route's list, as pkt meets them.
func (p *Plan) targets(pkt Packet, route Route, list []Endpoint) (targets []Target) {
	total := totalWeight(list)
	for _, e := range list {
		// What comes in from the network for an endpoint on one of the node's own addresses never leaves again, and
		// sources are rewritten only on the way out. Its replies pass the node all the same.
		stays := pkt.Via == ViaForward && p.Node.IsLocal(e.Addr())
		masquerade := (route.Masquerade || e.Addr() == pkt.From) && !stays
		targets = append(targets, Target{e, masquerade, float64(e.Weight) / float64(total)})
	}
	return targets
}

// Client tells what kind of client sends pkt.
func (n *Node) Client(pkt Packet) Client {
	iface := pkt.Interface
	if pkt.Via == ViaLocal {
		iface = ""
	}
	switch {
	case n.Detect[model.FamilyOf(pkt.From)].Matches(pkt.From, iface):
		return ClientPod
	case n.IsLocal(pkt.From):
		return ClientHost
	}
	return ClientOutside
}

// Find tells who answers at an address and port: the owner of the address itself, else, at an address of this node,
// that of the node port.
func (p *Plan) Find(to netip.AddrPort, protocol model.Protocol) (*Port, Frontend, bool) {
	key := Key{to.Addr(), protocol, to.Port()}
	if key.Addr.IsUnspecified() {
		return nil, Frontend{}, false // such a Key is a node port's
	}
	if port, f, ok := p.Owner(key); ok {
		return port, f, true
	}
	family := model.FamilyOf(key.Addr)
	if !p.Node.IsLocal(key.Addr) || !p.Node.NodePorts[family].Serves(key.Addr) {
		return nil, Frontend{}, false
	}
	port, f, ok := p.Owner(NodePortKey(family, protocol, key.Port))
	return port, f, ok && f.Kind == NodePort
}
