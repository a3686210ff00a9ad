package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// Topology is the machines of a lab and how they are connected:
//
//	pods ── node ── network ── outside
//	pods ── further node ──┘
//
// Every link is routed. The network between node and outside routes each machine's addresses to it; it knows no NAT.
type Topology struct {
	// Node is where Sluice runs. It forwards packets.
	Node Machine
	// Pods are behind the node.
	Pods []Machine
	// Outside is everything behind the node's uplink: clients, other nodes, and the pods of other nodes.
	Outside []Machine
	// Further are nodes beside Node, for a lab of a whole cluster.
	Further []Site
	// ToNode are the ranges that the network hands to the node, such as those of Services and load balancers. A packet
	// to them that a node sends back is refused as prohibited, which [Host.Dial] reports as unhandled.
	ToNode []netip.Prefix
}

// Site is a node and what is behind it.
type Site struct {
	// Node forwards packets.
	Node Machine
	Pods []Machine
}

// Machine is one network namespace of a Topology.
type Machine struct {
	Name string
	// Addresses are the machine's own.
	Addresses []netip.Addr
	// AnyIP are ranges of further machines that live in the same namespace: a server on all addresses answers for every
	// address in them, [Dial.From] may be any, and packets from one to another go through the node or the network as if
	// each had a namespace of its own.
	AnyIP []netip.Prefix
	// Interface names the other end of the machine's link: for a pod, the node's interface that its packets come in by.
	// Empty: "pod" or "net" and a number.
	Interface string
}

// Reference is the lab of most tests: node-a with its pods, other nodes with theirs, and clients outside, both
// families. Every address of a pod range is a pod in "pods-a" or "pods-b"; every address of a client range, and of the
// nodes' own network where it is no node, is in "clients".
func Reference() Topology {
	return Topology{
		Node: Machine{Name: "node-a", Addresses: addrs("192.168.10.11", "fd00:10::11")},
		Pods: []Machine{{
			Name: "pods-a", Addresses: addrs("10.244.1.254", "fd00:244:0:1::fffe"),
			AnyIP: prefixes("10.244.1.0/24", "10.244.9.0/24", "fd00:244:0:1::/64"),
		}},
		Outside: []Machine{
			{Name: "node-b", Addresses: addrs("192.168.10.12", "fd00:10::12")},
			{Name: "node-c", Addresses: addrs("192.168.10.13", "fd00:10::13")},
			{
				Name: "pods-b", Addresses: addrs("10.244.2.254", "fd00:244:0:2::fffe"),
				AnyIP: prefixes("10.244.2.0/24", "10.244.3.0/24", "fd00:244:0:2::/64", "fd00:244:0:3::/64"),
			},
			{
				Name: "clients", Addresses: addrs("203.0.113.254", "2001:db8:77::fffe"),
				AnyIP: prefixes(
					"203.0.113.0/24", "198.51.100.0/24", "2001:db8:77::/48", "2001:db8:78::/48",
					"192.168.10.0/24", "fd00:10::/64",
				),
			},
		},
		ToNode: prefixes("10.96.0.0/16", "fd00:96::/112", "192.0.2.0/24", "2001:db8:1b::/64"),
	}
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// machines lists all of them, the node first.
func (t Topology) machines() (all []Machine) {
	for _, s := range t.sites() {
		all = append(append(all, s.Node), s.Pods...)
	}
	return append(all, t.Outside...)
}

// sites lists all nodes with their pods.
func (t Topology) sites() []Site { return append([]Site{{Node: t.Node, Pods: t.Pods}}, t.Further...) }

// families are IPv4, and IPv6 if any machine has an address of it: else the lab works in a kernel without IPv6 too.
func (t Topology) families() []model.Family {
	if slices.ContainsFunc(t.machines(), func(m Machine) bool { return m.has(model.IPv6) }) {
		return []model.Family{model.IPv4, model.IPv6}
	}
	return []model.Family{model.IPv4}
}

// check reports what cannot be built: nameless machines, names used twice and machines without an address.
func (t Topology) check() error {
	var wrong []error
	seen := map[string]bool{}
	for _, m := range t.machines() {
		switch {
		case m.Name == "":
			wrong = append(wrong, errors.New("a machine has no name"))
		case seen[m.Name]:
			wrong = append(wrong, fmt.Errorf("two machines have the name %q", m.Name))
		case len(m.Addresses) == 0:
			wrong = append(wrong, fmt.Errorf("machine %q has no address", m.Name))
		}
		seen[m.Name] = true
		for _, p := range m.AnyIP {
			if !m.has(model.FamilyOf(p.Addr())) {
				wrong = append(wrong, fmt.Errorf("machine %q has the range %s, but no address of that family", m.Name, p))
			}
		}
	}
	for _, p := range t.ToNode {
		if !t.Node.has(model.FamilyOf(p.Addr())) {
			wrong = append(wrong, fmt.Errorf("the range %s is routed to the node, which has no address of that family", p))
		}
	}
	return errors.Join(wrong...)
}

// own are the machine's own addresses, each as a range of one.
func (m Machine) own() (all []netip.Prefix) {
	for _, a := range m.Addresses {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return all
}

// ranges are all addresses of the machine.
func (m Machine) ranges() []netip.Prefix { return append(m.own(), m.AnyIP...) }

// has reports whether the machine has an address of its own in a family. Routes to its ranges lead to that.
func (m Machine) has(f model.Family) bool {
	return slices.ContainsFunc(m.Addresses, func(a netip.Addr) bool { return model.FamilyOf(a) == f })
}
