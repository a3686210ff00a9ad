package conformance

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/config"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/flow"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

const (
	// packetsPerPlan times the number of plans, 100 unless -rapid.checks says otherwise, is 10,000.
	packetsPerPlan = 100
	// realPacketsPerPlan times -plans is the sample that is sent.
	realPacketsPerPlan = 15
)

var realPlans = flag.Int("plans", 20, "how many random plans each mode's packets are sent through")

// seed makes rapid start from a seed that the output names; -rapid.seed chooses one.
func seed(t *testing.T) {
	t.Helper()
	f := flag.Lookup("rapid.seed")
	if f.Value.String() == "0" {
		if err := f.Value.Set(fmt.Sprint(time.Now().UnixNano())); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%s: -rapid.seed=%s\n", t.Name(), f.Value)
}

// Whatever the Services, the policy and the packet, the rules of every mode mean what the plan says.
func TestRandomPackets(t *testing.T) {
	seed(t)
	for _, mode := range modes() {
		t.Run(mode.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := plan.Build(configOf(t, mode), hostOf(t, mode), gen.Snapshot(t))
				rules := mode.Compile(p)
				for range packetsPerPlan {
					pkt := gen.Packet(t, p)
					if isIPVS(mode) && flow.FromService(p, pkt) {
						continue
					}
					got, err := flow.Walked(rules.Trace(pkt))
					want := mode.Expect(p, flow.Flow{Packet: pkt, Want: flow.Decide(p, pkt)}).Want
					if err != nil || !got.Equal(want) {
						t.Fatalf("%+v\nplan:  %s\nrules: %s, error: %v", pkt, want, got, err)
					}
				}
			})
		})
	}
}

// modes are all, those that lean on the rules of another with either kind of rules.
func modes() []scenario.Mode {
	return append(scenario.Modes(), scenario.UserspaceOverIPTables(), scenario.IPVSOverIPTables())
}

func isIPVS(mode scenario.Mode) bool { return strings.HasPrefix(mode.Name, config.ModeIPVS) }

// configOf draws a policy for a mode.
func configOf(t *rapid.T, mode scenario.Mode) plan.Config {
	cfg := gen.Config(t)
	cfg.GuardClusterIPs = mode.Name == config.ModeNFTables || mode.Name == config.ModeUserspace || isIPVS(mode)
	if isIPVS(mode) {
		cfg.GuardAddresses, cfg.LocalhostNodePorts = true, false
	}
	return cfg
}

// hostOf draws the node's addresses. In mode ipvs no cluster IP is among them: those are on its own interface.
func hostOf(t *rapid.T, mode scenario.Mode) plan.Host {
	h := gen.Host(t)
	if isIPVS(mode) {
		h.Addresses = slices.DeleteFunc(h.Addresses, func(a netip.Addr) bool {
			return slices.ContainsFunc(prefixes("10.96.0.0/16", "fd00:96::/64"), func(p netip.Prefix) bool { return p.Contains(a) })
		})
	}
	return h
}

// A sample of the same packets is sent through a kernel that holds those rules.
func TestRandomPacketsInTheKernel(t *testing.T) {
	nstest.Require(t)
	seed(t)
	for _, mode := range modes() {
		t.Run(mode.Name, func(t *testing.T) {
			if mode.Require != nil {
				mode.Require(t)
			}
			for i := range *realPlans {
				w := drawWorld(t, mode, i)
				t.Run(strconv.Itoa(i), func(t *testing.T) { w.send(t, mode) })
			}
		})
	}
}

// world is a plan for the node of a lab, and packets.
type world struct {
	plan     *plan.Plan
	topology lab.Topology
	flows    []flow.Flow
}

// send asks the kernel of a lab.
func (w world) send(t *testing.T, mode scenario.Mode) {
	t.Helper()
	way := mode.Packets(t, scenario.Up(t, w.topology), w.topology)
	if err := way.Follow(w.plan, plan.Changes{}); err != nil {
		t.Fatal(err)
	}
	for _, err := range flow.CheckAll(way, w.flows) {
		t.Error(err)
	}
}

// drawWorld draws number i of the seed.
func drawWorld(t *testing.T, mode scenario.Mode, i int) world {
	t.Helper()
	first, err := strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return rapid.Custom(func(t *rapid.T) world {
		w := world{topology: topology()}
		cfg := configOf(t, mode)
		cfg.BridgeInterface, cfg.InterfaceNamePrefix = "pod0", "pod"
		w.plan = plan.Build(cfg, plan.Host{Addresses: w.topology.Node.Addresses}, gen.Snapshot(t))
		for len(w.flows) < realPacketsPerPlan {
			f, ok := sendable(w.topology, gen.Packet(t, w.plan))
			f.Want = flow.Decide(w.plan, f.Packet)
			if f = mode.Expect(w.plan, f); ok && !bypassed(w.topology, f) && !flow.FromService(w.plan, f.Packet) {
				w.flows = append(w.flows, f)
			}
		}
		return w
	}).Example(int(first>>1) + i)
}

// topology is the lab of what package gen draws.
func topology() lab.Topology {
	return lab.Topology{
		Node: lab.Machine{Name: gen.Node, Addresses: addrs("192.168.10.11", "172.20.0.11", "10.244.1.1", "fd00:10::11", "fd00:244:1::1")},
		Pods: []lab.Machine{{Name: "pods", Addresses: addrs("10.244.1.254", "fd00:244:1::fffe"), AnyIP: prefixes("10.244.1.0/24", "fd00:244:1::/64")}},
		Outside: []lab.Machine{
			{Name: "neighbour", Addresses: addrs("10.244.2.254", "fd00:244:2::fffe"), AnyIP: prefixes("10.244.2.0/24", "fd00:244:2::/64")},
			{
				Name: "clients", Addresses: addrs("203.0.113.254", "2001:db8:5::fffe"),
				AnyIP: prefixes("203.0.113.0/24", "192.0.2.0/24", "192.168.10.99/32", "2001:db8:5::/64", "fd00:10::99/128"),
			},
		},
		ToNode: prefixes("10.96.0.0/16", "198.51.100.0/24", "fd00:96::/112", "2001:db8::/64"),
	}
}

// sendable makes a flow of a packet that some machine of the lab can send. It comes in by the interface that the
// machine is connected to.
func sendable(top lab.Topology, pkt plan.Packet) (f flow.Flow, ok bool) {
	f = flow.Flow{Client: "outside", Packet: pkt}
	f.Packet.Interface = "eth0"
	switch {
	case pkt.Via == plan.ViaLocal && pkt.Protocol == model.SCTP && slices.Contains(top.Node.Addresses, pkt.To.Addr()):
		return f, false // a kernel without SCTP answers that as well, and limits how many errors it sends itself
	case pkt.Via == plan.ViaLocal:
		f.Client, f.Packet.Interface = "node", ""
		return f, pkt.From.IsLoopback() == pkt.To.Addr().IsLoopback()
	case pkt.To.Addr().IsLoopback():
		return f, false
	case within(top.Pods, pkt.From):
		f.Client, f.Packet.Interface = "pod", "pod0"
		return f, true
	}
	return f, within(top.Outside, pkt.From)
}

// bypassed is a flow from outside to an endpoint outside that sees its client: the answer goes straight to the client,
// who did not ask there, with Sluice or with kube-proxy.
func bypassed(top lab.Topology, f flow.Flow) bool {
	return f.Client == "outside" && slices.ContainsFunc(f.Want.Targets, func(t flow.Target) bool {
		return !t.Masquerade && within(top.Outside, t.Addr())
	})
}

func within(machines []lab.Machine, a netip.Addr) bool {
	return slices.ContainsFunc(machines, func(m lab.Machine) bool {
		return slices.ContainsFunc(m.AnyIP, func(p netip.Prefix) bool { return p.Contains(a) })
	})
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
