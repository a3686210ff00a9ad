package ipsets

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

func TestKernelHoldsWhatIsRendered(t *testing.T) {
	eachVariant(t, func(n *node) {
		for _, g := range goldens {
			s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
			g.edit(s, sl)
			r := compiled(sample.Plan(plan.Config{GuardClusterIPs: true}, s, sl))
			n.apply(r, false)
			n.want(r)
		}
		n.apply(dualStack(), false)
		n.want(dualStack())
	})
}

func TestSecondApplyWritesNothing(t *testing.T) {
	eachVariant(t, func(n *node) {
		if r := n.apply(dualStack(), false); r.Written == 0 {
			n.Fatal("the first writes nothing")
		}
		for _, recheck := range []bool{false, true} {
			if r := n.apply(dualStack(), recheck); r.Written != 0 || r.Restored != nil {
				n.Errorf("recheck %v: %+v", recheck, r)
			}
		}
		n.restart()
		if r := n.apply(dualStack(), false); r.Written != 0 || r.Former != nil {
			n.Errorf("another process: %+v", r)
		}
	})
}

// A change costs the entries of its Service port, and the rules only if sets become empty or get a first entry.
func TestChangeWritesItsOwnEntries(t *testing.T) {
	eachVariant(t, func(n *node) {
		planner := plan.NewPlanner(plan.Config{NodeName: "node-a"})
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
		planner.Update(model.Delta{
			Services: map[model.Name]*model.Service{s.Name: s}, Slices: map[model.Name]*model.Slice{sl.Name: sl},
		})
		r := compiled(planner.Plan())
		n.apply(r, false)
		written := n.backend.sides[model.IPv4].wrote
		update := func(d model.Delta) backend.Result {
			r.Update(planner.Plan(), planner.Update(d))
			got := n.apply(r, false)
			n.want(r)
			return got
		}
		more := *sl
		more.Endpoints = append(slices.Clone(sl.Endpoints), model.Endpoint{Address: netip.MustParseAddr("10.244.1.6"), Ready: true, Serving: true})
		if got := update(model.Delta{Slices: map[model.Name]*model.Slice{sl.Name: &more}}); got.Written != 1 {
			n.Errorf("one endpoint more: %+v", got)
		}
		if n.backend.sides[model.IPv4].wrote != written {
			n.Error("an endpoint made other rules")
		}
		if got := update(model.Delta{Services: map[model.Name]*model.Service{s.Name: nil}}); got.Written == 0 {
			n.Error("the Service is still there")
		}
	})
}

func TestWhatOthersDidIsRepaired(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.apply(dualStack(), false)
		n.apply(dualStack(), false) // reads its own writing, where the kernel tells
		for _, tt := range []struct {
			do   func()
			want []string
		}{
			{func() { n.ipset("del KUBE-CLUSTER-IP 10.96.0.10,tcp:80") }, []string{"IPv4 set KUBE-CLUSTER-IP"}},
			{func() { n.ipset("add KUBE-6-CLUSTER-IP fd00::1,tcp:1") }, []string{"IPv6 set KUBE-6-CLUSTER-IP"}},
			{func() { n.ipset("flush KUBE-IPVS-IPS") }, []string{"IPv4 set KUBE-IPVS-IPS"}},
			{func() { n.give(model.IPv4, "*nat\n-F KUBE-MARK-MASQ\nCOMMIT\n") }, []string{"IPv4 nat KUBE-MARK-MASQ"}},
			{func() {
				n.give(model.IPv6, "*filter\n-D OUTPUT "+string(jumpsFrom("filter", "OUTPUT")[0])+"\nCOMMIT\n")
			}, []string{"IPv6 filter OUTPUT → KUBE-IPVS-OUT-FILTER"}},
		} {
			tt.do()
			if got := n.apply(dualStack(), true); !slices.Equal(got.Restored, tt.want) || got.Written == 0 {
				n.Errorf("restored %q, want %q", got.Restored, tt.want)
			}
			n.want(dualStack())
		}
	})
}

func TestForeignRulesAndSetsStay(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.ipset("create mine hash:ip")
		n.ipset("add mine 192.0.2.1")
		n.ipset("create KUBE-OF-OTHERS hash:ip")
		foreign := "*filter\n:MINE - [0:0]\n-A INPUT -s 192.0.2.1/32 -j ACCEPT\n-A MINE -m set --match-set mine src -j DROP\n-A FORWARD -j MINE\nCOMMIT\n"
		n.give(model.IPv4, foreign)
		n.apply(dualStack(), false)
		n.do(n.backend.Cleanup)
		rs := n.rules(model.IPv4)
		if got := rs.Table("filter").Chain("INPUT").Rules; len(got) != 1 {
			n.Errorf("INPUT %q", got)
		}
		if got := rs.Table("filter").Chain("MINE").Rules; len(got) != 1 {
			n.Errorf("MINE %q", got)
		}
		if got := n.saved(); len(got) != 3 {
			n.Errorf("sets %q", got)
		}
	})
}

func TestCleanupRemovesKubeProxysOfBothFamilies(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.ipset("create KUBE-6-CLUSTER-IP hash:ip,port family inet6")
		n.ipset("create KUBE-6-LOAD-BALANCER-SOURCE-CID hash:ip,port,net family inet6")
		n.ipset("create KUBE-NODE-PORT-TCP bitmap:port range 0-65535")
		n.give(model.IPv6, "*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-NODE-PORT - [0:0]\n-A KUBE-SERVICES -s ::1/128 -j RETURN\n"+
			"-A KUBE-SERVICES -m set --match-set KUBE-6-CLUSTER-IP dst,dst -j ACCEPT\n-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\nCOMMIT\n")
		var found []string
		n.do(func(ctx context.Context) (err error) { found, err = n.backend.Leftovers(ctx); return err })
		if len(found) != 5 {
			n.Errorf("found %q", found)
		}
		n.do(n.backend.Cleanup)
		n.do(n.backend.Cleanup)
		for _, f := range model.Families {
			if text := n.rules(f).String(); strings.Contains(text, "KUBE-") {
				n.Errorf("%s:\n%s", f, text)
			}
		}
		if got := n.saved(); got != nil {
			n.Errorf("sets %q", got)
		}
	})
}

// What mode iptables has is replaced in one step, and its own chains go; the other way round, Cleanup spares what mode
// iptables has taken over.
func TestTakingOver(t *testing.T) {
	const iptables = `*filter
:KUBE-FORWARD - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "default/web:http has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-SVC-ABC - [0:0]
:KUBE-SEP-ABC - [0:0]
:KUBE-POSTROUTING - [0:0]
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.11/32 -p tcp -m comment --comment "default/old:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-ABC
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-ABC -j KUBE-SEP-ABC
-A KUBE-SEP-ABC -p tcp -j DNAT --to-destination 10.244.1.9:80
COMMIT
`
	eachVariant(t, func(n *node) {
		n.give(model.IPv4, iptables)
		n.apply(dualStack(), false)
		n.want(dualStack())
		text := n.rules(model.IPv4).String()
		for _, gone := range []string{"KUBE-SVC-ABC", "KUBE-SEP-ABC", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "load balancer firewall"} {
			if strings.Contains(text, gone) {
				n.Errorf("%s is still there:\n%s", gone, text)
			}
		}
		if jumps := n.rules(model.IPv4).Table("nat").Chain("PREROUTING").Rules; len(jumps) != 1 {
			n.Errorf("jumps %q", jumps)
		}
		n.give(model.IPv4, iptables)
		n.do(n.backend.Cleanup)
		text = n.rules(model.IPv4).String()
		for _, stays := range []string{"-j KUBE-SVC-ABC", "load balancer firewall", "-j KUBE-FORWARD", "PREROUTING -m comment"} {
			if !strings.Contains(text, stays) {
				n.Errorf("%s is gone:\n%s", stays, text)
			}
		}
		if strings.Contains(text, "IPVS") || n.saved() != nil {
			n.Errorf("left: %q\n%s", n.saved(), text)
		}
	})
}

// A set of another size or kind is made anew while rules name it.
func TestSetsAreMadeAnew(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.ipset("create KUBE-CLUSTER-IP hash:ip,port maxelem 10 counters")
		n.ipset("create KUBE-IPVS-IPS bitmap:port range 1-2")
		n.give(model.IPv4, "*filter\n-A INPUT -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT\nCOMMIT\n")
		n.apply(dualStack(), false)
		n.want(dualStack())
	})
}

func TestSetGrows(t *testing.T) {
	eachVariant(t, func(n *node) {
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.10"})
		a := netip.MustParseAddr("10.0.0.1")
		few := compiled(sample.Plan(plan.Config{}, s, sl))
		n.apply(few, false)
		many := *sl
		for range maxElem + 1 {
			many.Endpoints = append(many.Endpoints, model.Endpoint{Address: a, Ready: true, Serving: true})
			a = a.Next()
		}
		r := compiled(sample.Plan(plan.Config{}, s, &many))
		n.apply(r, false)
		n.want(r)
		if got := n.apply(few, false); got.Written == 0 {
			n.Error("entries stay")
		}
	})
}

func TestFormerFrontendsAreTold(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.apply(dualStack(), false)
		n.restart()
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.99"})
		got := n.apply(compiled(sample.Plan(plan.Config{}, s, sl)), false).Former
		if len(got) != 8 || !slices.Contains(got, plan.NodePortKey(model.IPv6, model.TCP, 30080)) {
			n.Errorf("former %v", got)
		}
	})
}

// An entry that the kernel refuses is its Service port's alone.
func TestRefusedEntry(t *testing.T) {
	eachVariant(t, func(n *node) {
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
		r := compiled(sample.Plan(plan.Config{}, s, sl))
		f := r.families[model.IPv4]
		f.entries[clusterIP][entryOf(netip.MustParseAddr("fd00::1"))] = use{n: 1} // IPv6 in a set of IPv4
		id := plan.PortID{Service: s.Name, Port: "bad", Protocol: model.TCP}
		f.members[id] = []member{{kind: clusterIP, Entry: entryOf(netip.MustParseAddr("fd00::1"))}}
		got := n.apply(r, false)
		if err := got.Refused[id]; err == nil || !strings.Contains(err.Error(), "KUBE-CLUSTER-IP") {
			n.Errorf("refused %v", got.Refused)
		}
		if text := n.ipset("list KUBE-CLUSTER-IP"); !strings.Contains(text, "10.96.0.10,tcp:80") {
			n.Error(text)
		}
		n.do(func(ctx context.Context) error {
			held, err := n.backend.Apply(ctx, r, backend.Request{Hold: map[plan.PortID]bool{id: true}})
			if len(held.Refused) != 0 || held.Written != 0 {
				n.Errorf("held: %+v", held)
			}
			return err
		})
		if got := n.apply(r, false); got.Refused[id] == nil {
			n.Error("it is not tried again")
		}
	})
}

// A new process keeps the marks that the kernel has, whatever numbers it would give.
func TestMarksAreKept(t *testing.T) {
	eachVariant(t, func(n *node) {
		s, sl, six := everything()
		s.Name.Name, sl.Service.Name, six.Service.Name = "b", "b", "b"
		planner := plan.NewPlanner(plan.Config{NodeName: "node-a"})
		update := func(name string) plan.Changes {
			one, slice := *s, *sl
			one.Name.Name, slice.Name.Name, slice.Service.Name = name, name, name
			one.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 1, name[0]})}
			one.LoadBalancerIPs = []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, name[0]})}
			one.ExternalIPs, one.Ports = nil, slices.Clone(one.Ports)
			one.Ports[0].NodePort, one.HealthCheckNodePort = 30000+uint16(name[0]), 31000+uint16(name[0])
			return planner.Update(model.Delta{
				Services: map[model.Name]*model.Service{one.Name: &one}, Slices: map[model.Name]*model.Slice{slice.Name: &slice},
			})
		}
		update("b")
		r := compiled(planner.Plan())
		n.apply(r, false)
		r.Update(planner.Plan(), update("a"))
		n.apply(r, false)
		n.restart()
		fresh := compiled(planner.Plan())
		n.do(func(ctx context.Context) error { return n.backend.Adopt(ctx, fresh) })
		kept := func(when string) {
			for id := range planner.Plan().Ports {
				was, ok := r.Mark(id)
				if now, _ := fresh.Mark(id); !ok || now != was {
					n.Errorf("%s, %s: mark %#x was %#x, %v", id, when, now, was, ok)
				}
			}
		}
		kept("before anything is written")
		if got := n.apply(fresh, false); got.Written != 0 {
			n.Errorf("another process wrote %d", got.Written)
		}
		kept("applied")
	})
}
