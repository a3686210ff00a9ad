package flow

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

const (
	// silence is how long a packet that must be lost is waited for: answers inside one machine take less than 1 ms.
	silence = 400 * time.Millisecond
	// patience is for all others; a busy machine may be late.
	patience = 10 * time.Second
	// mostWaits bounds how often a client connects until it has met every endpoint, in multiples of how often it has to
	// for the rarest on average. That it misses that one by chance has a probability of e to the power of -40.
	mostWaits = 40
)

// Apply makes the kernel of the lab's node hold a plan.
type Apply func(*plan.Plan, plan.Changes) error

// ByPackets answers with real packets in a lab: clients connect, and servers tell where they arrived and from whom. A
// packet that is nobody's reaches the host whose address it has, or is refused by the network as one that the node sent
// back.
func ByPackets(l *lab.Lab, t lab.Topology, apply Apply) Way {
	return &byPackets{lab: l, topology: t, apply: apply, serving: map[service]bool{}}
}

type byPackets struct {
	lab      *lab.Lab
	topology lab.Topology
	apply    Apply
	plan     *plan.Plan

	mu      sync.Mutex // guards serving
	serving map[service]bool
}

// service is a port that a machine of the lab answers at.
type service struct {
	machine  string
	protocol model.Protocol
	port     uint16
}

func (w *byPackets) Name() string { return "packets" }

func (w *byPackets) Follow(p *plan.Plan, c plan.Changes) error {
	w.plan = p
	return w.apply(p, c)
}

// mayBeside: a packet that is lost changes nothing for others.
func (w *byPackets) mayBeside(f Flow) bool { return f.Want.Action == plan.Drop }

func (w *byPackets) Ask(f Flow) (Outcome, error) {
	client, err := w.client(f)
	if err != nil {
		return Outcome{}, err
	}
	if err := w.serve(f); err != nil {
		return Outcome{}, err
	}
	d := lab.Dial{From: f.Packet.From, To: f.Packet.To, Protocol: f.Packet.Protocol, Timeout: patience}
	if f.Want.Action == plan.Drop {
		d.Timeout = silence
	}
	if !w.keeps(f) {
		return w.connect(client, d, f, len(f.Want.Targets))
	}
	got, err := w.connect(client, d, f, 1)
	if len(got.Targets) == 1 && slices.ContainsFunc(f.Want.Targets, got.Targets[0].equal) {
		return f.Want, err
	}
	return got, err
}

// keeps reports whether the client keeps the endpoint that it gets. It cannot meet all that are wanted then; what is
// right is one of them, and the same each time.
func (w *byPackets) keeps(f Flow) bool {
	d := w.plan.Decide(f.Packet)
	return len(f.Want.Targets) > 1 && d.Port != nil && d.Port.Affinity > 0
}

// connect dials until so many endpoints were met, and collects where it came. The first connection that meets another
// fate than the wanted one is the answer.
func (w *byPackets) connect(client *lab.Host, d lab.Dial, f Flow, targets int) (Outcome, error) {
	got := Outcome{}
	for i := range tries(f.Want.Targets) {
		o, err := dial(client, d, f)
		if err != nil {
			return got, err
		}
		one := w.outcome(o, f)
		switch {
		case one.Action != f.Want.Action:
			return one, nil
		case i == 0:
			got = one
		default:
			got = merge(got, one)
		}
		if enough := i+1 >= 4*targets; enough && len(got.Targets) >= targets {
			return got, nil
		}
	}
	return got, nil
}

// dial tries again where a packet is to come back that the network does not take. Over IPv4 it tells one address so but
// once a second, after the first few: a limit of the kernel's that no namespace can change.
func dial(client *lab.Host, d lab.Dial, f Flow) (lab.Outcome, error) {
	o, err := client.Dial(d)
	if err == nil && o.Action == plan.Drop && f.Want.Action == plan.Unhandled && d.To.Addr().Is4() {
		return client.Dial(d)
	}
	return o, err
}

// tries is how often to connect, at most, until each of these was met.
func tries(targets []Target) int {
	rarest := 1.0
	for _, t := range targets {
		rarest = min(rarest, t.Share)
	}
	return int(math.Ceil(mostWaits / rarest))
}

// outcome reads what a client met. Where it came to the very address it asked for, nothing was done to it.
func (w *byPackets) outcome(o lab.Outcome, f Flow) Outcome {
	if o.Action == plan.Forward && o.Endpoint == f.Packet.To {
		return NewOutcome(plan.Unhandled)
	}
	if o.Action != plan.Forward {
		return NewOutcome(o.Action)
	}
	return NewOutcome(plan.Forward, Target{AddrPort: o.Endpoint, Masquerade: w.masqueraded(o, f)})
}

// masqueraded tells by whom the endpoint saw. A process of the node is seen with a node's address either way; then
// what is wanted cannot be told from what is not.
func (w *byPackets) masqueraded(o lab.Outcome, f Flow) bool {
	node := w.topology.Node.Addresses
	if slices.Contains(node, f.Packet.From) && slices.Contains(node, o.Peer.Addr()) {
		for _, t := range f.Want.Targets {
			if t.AddrPort == o.Endpoint {
				return t.Masquerade
			}
		}
	}
	return o.Peer.Addr() != f.Packet.From
}

// client is the machine that has the flow's source address.
func (w *byPackets) client(f Flow) (*lab.Host, error) {
	if f.Packet.Via == plan.ViaLocal {
		return w.lab.Node(), nil
	}
	machines := slices.Concat(w.topology.Pods, w.topology.Outside)
	for _, m := range machines {
		if has(m, f.Packet.From) {
			return w.lab.Host(m.Name), nil
		}
	}
	return nil, fmt.Errorf("no machine of the lab has the client's address %s", f.Packet.From)
}

// serve answers wherever the packet may come to: at every endpoint of the plan with that protocol, right or wrong, and
// at the port it asks for on every machine.
func (w *byPackets) serve(f Flow) error {
	protocol := f.Packet.Protocol
	machines := slices.Concat([]lab.Machine{w.topology.Node}, w.topology.Pods, w.topology.Outside)
	ports := map[uint16]bool{f.Packet.To.Port(): true}
	for _, p := range w.plan.Ports {
		if p.ID.Protocol != protocol {
			continue
		}
		for _, e := range slices.Concat(p.Cluster, p.Local) {
			ports[e.Port()] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range machines {
		for port := range ports {
			s := service{m.Name, protocol, port}
			if w.serving[s] {
				continue
			}
			if _, err := w.lab.Host(m.Name).ServeAll(protocol, port); err != nil {
				return err
			}
			w.serving[s] = true
		}
	}
	return nil
}

func has(m lab.Machine, a netip.Addr) bool {
	return slices.Contains(m.Addresses, a) || slices.ContainsFunc(m.AnyIP, func(p netip.Prefix) bool { return p.Contains(a) })
}

// merge joins the targets of two forwards.
func merge(a, b Outcome) Outcome {
	for _, t := range b.Targets {
		if !slices.Contains(a.Targets, t) {
			a = NewOutcome(a.Action, append(slices.Clone(a.Targets), t)...)
		}
	}
	return a
}
