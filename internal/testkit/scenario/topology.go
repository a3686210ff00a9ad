package scenario

import (
	"net/netip"
	"slices"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/testkit/flow"
)

// Topology is the lab that a scenario's flows need, seen from one node: that of the reference cluster, with every
// address that the flows name where it belongs.
func Topology(t testing.TB, s Scenario, node string) lab.Topology {
	t.Helper()
	top := cluster(node)
	for _, step := range s.Steps {
		if step.Name == "addresses" {
			top.Node.Addresses = merged(top.Node.Addresses, parseAddrs(t, string(step.Data)))
		}
	}
	flows, err := s.Flows()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flows {
		if f.On == node {
			place(&top, f)
		}
	}
	return top
}

// cluster is the reference cluster around node-a, or with node-b in its place.
func cluster(node string) lab.Topology {
	top := lab.Reference()
	clients := &top.Outside[len(top.Outside)-1]
	clients.AnyIP = slices.DeleteFunc(clients.AnyIP, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr("198.51.100.1")) })
	if node == "node-b" {
		a, podsA := top.Node, top.Pods[0]
		top.Node, top.Outside[0] = top.Outside[0], a
		b := netip.MustParsePrefix("10.244.2.0/24")
		pods := &top.Outside[2]
		pods.AnyIP = slices.DeleteFunc(pods.AnyIP, func(p netip.Prefix) bool { return p == b })
		top.Outside = append(top.Outside, podsA)
		top.Pods = []lab.Machine{{Name: "pods-here", Addresses: []netip.Addr{netip.MustParseAddr("10.244.2.253")}, AnyIP: []netip.Prefix{b}}}
	}
	return top
}

// place makes room for a flow: its client lives where its kind does, what it asks for is routed to the node, and
// endpoints that are nowhere yet are outside.
func place(top *lab.Topology, f flow.Flow) {
	clients := &top.Outside[slices.IndexFunc(top.Outside, func(m lab.Machine) bool { return m.Name == "clients" })]
	switch f.Client {
	case "pod":
		addTo(&top.Pods[0], *top, f.Packet.From)
	case "outside":
		addTo(clients, *top, f.Packet.From)
	}
	for _, t := range f.Want.Targets {
		addTo(clients, *top, t.Addr())
	}
	to := f.Packet.To.Addr()
	if !to.IsLoopback() && !slices.Contains(top.Node.Addresses, to) && !contains(top.ToNode, to) {
		top.ToNode = append(top.ToNode, netip.PrefixFrom(to, to.BitLen()))
	}
}

// addTo gives a machine an address that no machine has.
func addTo(m *lab.Machine, top lab.Topology, a netip.Addr) {
	for _, have := range slices.Concat([]lab.Machine{top.Node}, top.Pods, top.Outside) {
		if slices.Contains(have.Addresses, a) || contains(have.AnyIP, a) {
			return
		}
	}
	if !a.IsLoopback() {
		m.AnyIP = append(m.AnyIP, netip.PrefixFrom(a, a.BitLen()))
	}
}

func contains(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
}

func merged(a, b []netip.Addr) []netip.Addr {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}
