package nftables

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/ipvs"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
)

// virtual is a lab's node with virtual servers.
type virtual struct {
	t   *testing.T
	lab *lab.Lab
	*ipvs.Handle
}

// upVirtual is the lab with pods here and elsewhere, and the node itself, that answer at port 8080.
func upVirtual(t *testing.T) virtual {
	t.Helper()
	nstest.RequireIPVS(t)
	v := virtual{t: t, lab: upLab(t)}
	for _, host := range []string{"pods-a", "pods-b", "node-a"} {
		if _, err := v.lab.Host(host).ServeAll(model.UDP, 8080); err != nil {
			t.Fatal(err)
		}
		if host == "pods-a" {
			continue // answers already
		}
		if _, err := v.lab.Host(host).ServeAll(model.TCP, 8080); err != nil {
			t.Fatal(err)
		}
	}
	v.do(func() (err error) {
		if v.Handle, err = ipvs.Open(); err == nil {
			_, err = sysctl.Set("net.ipv4.vs.conntrack", "1")
		}
		return err
	})
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func (v virtual) do(f func() error) {
	v.t.Helper()
	if err := v.lab.Node().Do(f); err != nil {
		v.t.Fatal(err)
	}
}

// serve makes what a plan and marks call for: a virtual server of each address and one of each mark, in turn.
func (v virtual) serve(w *rig) {
	v.t.Helper()
	p := w.planner.Plan()
	for _, port := range p.Sorted() {
		family := port.ID.Family
		for _, fe := range port.Frontends {
			addresses := []netip.Addr{fe.Addr}
			if fe.Kind == plan.NodePort {
				addresses = []netip.Addr{p.Node.Primary[family]}
			} else {
				own(v.t, v.lab.Node(), fe.Addr.String())
			}
			route := port.Access(fe.Kind)[plan.ClientPod]
			for _, a := range addresses {
				v.add(ipvs.Name{Addr: a, Protocol: ipvs.Protocol(fe.Protocol), Port: fe.Port}, port.Endpoints(route.List))
			}
		}
		if mark, ok := w.rules.Mark(port.ID); ok {
			v.add(ipvs.Name{Addr: family.Unspecified(), Mark: mark}, port.Endpoints(port.External[plan.ClientOutside].List))
		}
	}
}

func (v virtual) add(n ipvs.Name, endpoints []plan.Endpoint) {
	v.t.Helper()
	if err := v.Add(ipvs.Server{Name: n, Scheduler: "rr"}); err != nil {
		v.t.Fatal(err)
	}
	for _, e := range endpoints {
		if err := v.AddDestination(n, ipvs.Destination{AddrPort: e.AddrPort, Weight: 1}); err != nil {
			v.t.Fatal(err)
		}
	}
}

// servicesOfIPVS are, of one protocol, 1: a load balancer with policy Local, with an endpoint here and one elsewhere;
// 2: the same with policy Cluster; 3: a cluster IP whose one endpoint is the client itself; 4: one on the node itself.
func servicesOfIPVS(p model.Protocol) (all []model.Delta) {
	for i := 1; i <= 4; i++ {
		four, six := []string{"10.244.1.5", "10.244.2.5"}, []string{"fd00:244:0:1::5", "fd00:244:0:2::5"}
		if i == 3 {
			four, six = four[:1], six[:1]
		}
		if i == 4 {
			four, six = []string{"192.168.10.11"}, []string{"fd00:10::11"}
		}
		d := serviceWith(i, addrsOf(four...), func(s *model.Service) {
			s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr(fmt.Sprintf("fd00:96::%d", i)))
			if s.Ports[0].Protocol = p; i != 3 {
				s.Type, s.Ports[0].NodePort = model.LoadBalancer, uint16(30080+i)
				s.LoadBalancerIPs = addrsOf(fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("2001:db8:1b::%d", i))
			}
			if i == 1 {
				s.ExternalPolicy = model.PolicyLocal
			}
		})
		sl := d.Slices[serviceName(i)]
		sl.Ports[0].Protocol = p
		other := &model.Slice{Name: serviceName(100 + i), Service: sl.Service, Family: model.IPv6, Ports: sl.Ports}
		for _, a := range addrsOf(six...) {
			other.Endpoints = append(other.Endpoints, model.Endpoint{Address: a, Node: "node-a", Ready: true, Serving: true})
		}
		for _, sl := range []*model.Slice{sl, other} {
			if len(sl.Endpoints) > 1 {
				sl.Endpoints[1].Node = "node-b"
			}
		}
		d.Slices[other.Name] = other
		all = append(all, d)
	}
	return all
}

// leaks counts what goes to endpoints with a mark, and what leaves with a mark or a route still on it.
const leaks = `
table inet leaks {
	counter led { }
	counter marked { }
	counter routed { }
	chain before {
		type filter hook postrouting priority 50;
		meta l4proto { tcp, udp } th dport 8080 meta mark & 0xffffe000 == 0x2000 counter name led
	}
	chain postrouting {
		type filter hook postrouting priority 300;
		meta l4proto { tcp, udp } th dport 8080 meta mark != 0 counter name marked
		meta l4proto { tcp, udp } th dport 8080 meta priority > 0:f counter name routed
	}
}`

// TestPacketsThroughIPVS: who is sent where, and whom the endpoint sees. "node" is an address of the node's.
func TestPacketsThroughIPVS(t *testing.T) {
	for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
		t.Run(protocol.String(), func(t *testing.T) {
			v := upVirtual(t)
			w := newRigWith(t, ipvsOptions(), servicesOfIPVS(protocol)...)
			applyAt(t, v.lab.Node(), New(ipvsOptions(), Deps{}), w)
			v.serve(w)
			cmd := v.lab.Node().Command(t.Context(), "nft", "-f", "-")
			cmd.Stdin = strings.NewReader(leaks)
			succeed(t, cmd)
			for _, tt := range []struct {
				host      string
				from      [2]string
				to        [2]string
				endpoints string // the last parts of their addresses
				sees      string
			}{
				{"clients", [2]string{"203.0.113.7", "2001:db8:77::7"}, [2]string{"192.0.2.1:80", "[2001:db8:1b::1]:80"}, "1.5", "client"},
				{"clients", [2]string{"203.0.113.7", "2001:db8:77::7"}, [2]string{"192.168.10.11:30081", "[fd00:10::11]:30081"}, "1.5", "client"},
				{"clients", [2]string{"203.0.113.7", "2001:db8:77::7"}, [2]string{"192.0.2.2:80", "[2001:db8:1b::2]:80"}, "1.5 2.5", "node"},
				{"clients", [2]string{"203.0.113.7", "2001:db8:77::7"}, [2]string{"192.168.10.11:30082", "[fd00:10::11]:30082"}, "1.5 2.5", "node"},
				{"clients", [2]string{"203.0.113.7", "2001:db8:77::7"}, [2]string{"10.96.0.1:80", "[fd00:96::1]:80"}, "1.5 2.5", "node"},
				{"clients", [2]string{"203.0.113.7", "2001:db8:77::7"}, [2]string{"192.0.2.4:80", "[2001:db8:1b::4]:80"}, "10.11", "client"},
				{"pods-a", [2]string{"10.244.1.50", "fd00:244:0:1::50"}, [2]string{"192.0.2.1:80", "[2001:db8:1b::1]:80"}, "1.5 2.5", "client"},
				{"pods-a", [2]string{"10.244.1.50", "fd00:244:0:1::50"}, [2]string{"192.0.2.2:80", "[2001:db8:1b::2]:80"}, "1.5 2.5", "node"},
				{"pods-a", [2]string{"10.244.1.50", "fd00:244:0:1::50"}, [2]string{"10.96.0.1:80", "[fd00:96::1]:80"}, "1.5 2.5", "client"},
				{"pods-a", [2]string{"10.244.1.50", "fd00:244:0:1::50"}, [2]string{"10.96.0.4:80", "[fd00:96::4]:80"}, "10.11", "client"},
				{"pods-a", [2]string{"10.244.1.5", "fd00:244:0:1::5"}, [2]string{"10.96.0.3:80", "[fd00:96::3]:80"}, "1.5", "node"},
				{"node-a", [2]string{}, [2]string{"10.96.0.1:80", "[fd00:96::1]:80"}, "1.5 2.5", "node"},
				{"node-a", [2]string{}, [2]string{"192.0.2.1:80", "[2001:db8:1b::1]:80"}, "1.5 2.5", "node"},
				{"node-a", [2]string{}, [2]string{"192.168.10.11:30081", "[fd00:10::11]:30081"}, "1.5 2.5", "node"},
				{"node-a", [2]string{}, [2]string{"10.96.0.4:80", "[fd00:96::4]:80"}, "10.11", "node"},
			} {
				for _, f := range model.Families {
					d := lab.Dial{To: netip.MustParseAddrPort(tt.to[f]), Protocol: protocol}
					if tt.from[f] != "" {
						d.From = netip.MustParseAddr(tt.from[f])
					}
					v.reaches(tt.host, d, tt.endpoints, tt.sees)
				}
			}
			for counter, none := range map[string]bool{"led": false, "marked": true, "routed": true} {
				got := succeed(t, v.lab.Node().Command(t.Context(), "nft", "list", "counter", "inet", "leaks", counter))
				if strings.Contains(got, "packets 0 ") != none {
					t.Errorf("want none: %v\n%s", none, got)
				}
			}
		})
	}
}

// reaches dials as often as there are endpoints, each of which must be reached.
func (v virtual) reaches(host string, d lab.Dial, endpoints, sees string) {
	v.t.Helper()
	want := map[netip.Addr]bool{}
	for e := range strings.FieldsSeq(endpoints) {
		four := map[string]string{"1.5": "10.244.1.5", "2.5": "10.244.2.5", "10.11": "192.168.10.11"}
		six := map[string]string{"1.5": "fd00:244:0:1::5", "2.5": "fd00:244:0:2::5", "10.11": "fd00:10::11"}
		want[netip.MustParseAddr([]map[string]string{four, six}[model.FamilyOf(d.To.Addr())][e])] = true
	}
	for range len(want) {
		got, err := v.lab.Host(host).Dial(d)
		if err != nil || got.Action != plan.Forward || !want[got.Endpoint.Addr()] {
			v.t.Errorf("%s to %s: %v, %v, want %s", host, d.To, got, err, endpoints)
			return
		}
		delete(want, got.Endpoint.Addr())
		peer := got.Peer.Addr()
		if ofNode := peer == v.lab.Node().Address(model.FamilyOf(peer)); sees == "node" && !ofNode || sees == "client" && peer != d.From {
			v.t.Errorf("%s to %s: the endpoint sees %s, want the %s's", host, d.To, peer, sees)
		}
	}
}

// TestRefusedInFrontOfIPVS: a virtual server that is there for connections that are open takes none that is refused.
func TestRefusedInFrontOfIPVS(t *testing.T) {
	v := upVirtual(t)
	w := newRigWith(t, ipvsOptions(), servicesOfIPVS(model.TCP)...)
	b := New(ipvsOptions(), Deps{})
	applyAt(t, v.lab.Node(), b, w)
	v.serve(w)
	open := connect(t, v.lab, 4, "192.168.10.11:8080")
	w.change(serviceWith(4, nil, nil))
	applyAt(t, v.lab.Node(), b, w)
	for _, host := range []string{"pods-a", "node-a"} {
		got, err := v.lab.Host(host).Dial(lab.Dial{To: netip.AddrPortFrom(clusterIP(4), 80), Protocol: model.TCP})
		if err != nil || got.Action != plan.Reject {
			t.Errorf("%s: %v, %v", host, got, err)
		}
	}
	echo(t, open)
}

// TestForgottenConnectionIsReset: who speaks after ipvs has forgotten a connection is told that it is over.
func TestForgottenConnectionIsReset(t *testing.T) {
	v := upVirtual(t)
	w := newRigWith(t, ipvsOptions(), servicesOfIPVS(model.TCP)...)
	applyAt(t, v.lab.Node(), New(ipvsOptions(), Deps{}), w)
	v.serve(w)
	if err := v.SetTimeouts(ipvs.Timeouts{TCP: time.Second}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, v.lab, 4, "192.168.10.11:8080")
	name := ipvs.Name{Addr: clusterIP(4), Protocol: ipvs.TCP, Port: 80}
	for known := true; known; time.Sleep(100 * time.Millisecond) {
		all, err := v.Destinations(name)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		known = all[0].Active+all[0].Inactive > 0
	}
	if err := c.Echo("still there?"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v, want %v", err, syscall.ECONNRESET)
	}
}
