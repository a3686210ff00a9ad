package nftables

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"sluice/internal/kernel/link"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// own gives the node addresses of Services, as the device of ipvs does; loopback stands for it where the kernel has none
// of its kind.
func own(t *testing.T, h *lab.Host, addresses ...string) {
	t.Helper()
	err := h.Do(func() error {
		links, err := link.Here()
		if err != nil {
			return err
		}
		defer links.Close()
		device := "kube-ipvs0"
		if err := links.AddDummy(device); errors.Is(err, syscall.EOPNOTSUPP) {
			device = "lo"
		} else if err != nil {
			return err
		}
		for _, a := range addrsOf(addresses...) {
			if err := links.AddAddress(device, netip.PrefixFrom(a, a.BitLen())); err != nil {
				return err
			}
		}
		return links.Settle(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// servicesForIPVS are: 1 with an endpoint, 2 without any, 3 with a source range, 4 with endpoints elsewhere and policy
// Local, all load balancers; each has both families.
func servicesForIPVS() (all []model.Delta) {
	for i := 1; i <= 4; i++ {
		d := serviceWith(i, addrsOf("10.244.1.5"), func(s *model.Service) {
			s.Type, s.Ports[0].NodePort = model.LoadBalancer, uint16(30080+i)
			s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr(fmt.Sprintf("fd00:96::%d", i)))
			s.LoadBalancerIPs = addrsOf(fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("2001:db8:1b::%d", i))
		})
		s, four := d.Services[serviceName(i)], d.Slices[serviceName(i)]
		six := &model.Slice{Name: serviceName(100 + i), Service: s.Name, Family: model.IPv6, Ports: four.Ports}
		six.Endpoints = []model.Endpoint{{Address: netip.MustParseAddr("fd00:244:0:1::5"), Node: "node-a", Ready: true, Serving: true}}
		d.Slices[six.Name] = six
		switch i {
		case 1:
			s.ExternalPolicy, s.HealthCheckNodePort = model.PolicyLocal, 31852
		case 2:
			four.Endpoints, six.Endpoints = nil, nil
		case 3:
			s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("2001:db8:77::/64")}
		case 4:
			s.ExternalPolicy = model.PolicyLocal
			four.Endpoints[0].Node, six.Endpoints[0].Node = "node-b", "node-b"
		}
		all = append(all, d)
	}
	return all
}

// TestRefusalsForIPVS is without ipvs, which this may be a kernel without: what it would take is refused, too. Nothing
// that listens at all addresses of the node is reached by way of a Service's.
func TestRefusalsForIPVS(t *testing.T) {
	l := upLab(t)
	node := l.Node()
	for i := 1; i <= 4; i++ {
		own(t, node, clusterIP(i).String(), fmt.Sprintf("fd00:96::%d", i), fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("2001:db8:1b::%d", i))
	}
	for _, port := range []uint16{22, 80, 31852, 30082} {
		for _, p := range []model.Protocol{model.TCP, model.UDP} {
			if _, err := node.ServeAll(p, port); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := newRigWith(t, ipvsOptions(), append(servicesForIPVS(), serviceCIDRs())...)
	applyAt(t, node, New(ipvsOptions(), Deps{}), w)
	var wg sync.WaitGroup
	defer wg.Wait()
	const pod, client, other = "10.244.1.50", "203.0.113.7", "203.0.113.77"
	for _, tt := range []struct {
		host, from, to string
		protocol       model.Protocol
		want           plan.Action
	}{
		{"pods-a", pod, "10.96.0.1:80", model.TCP, plan.Reject}, // by nobody but the last chain
		{"pods-a", pod, "10.96.0.1:22", model.TCP, plan.Reject},
		{"pods-a", pod, "10.96.0.1:22", model.UDP, plan.Reject},
		{"pods-a", pod, "10.96.0.2:80", model.TCP, plan.Reject},
		{"pods-a", pod, "10.96.0.99:80", model.TCP, plan.Drop},
		{"pods-a", pod, "192.0.2.3:80", model.TCP, plan.Drop},
		{"pods-a", pod, "192.0.2.2:80", model.TCP, plan.Reject},
		{"pods-a", pod, "10.96.0.1:31852", model.TCP, plan.Forward},
		{"clients", client, "192.0.2.1:22", model.TCP, plan.Reject},
		{"clients", client, "192.0.2.1:31852", model.TCP, plan.Forward},
		{"clients", client, "192.0.2.1:31852", model.UDP, plan.Reject},
		{"clients", client, "192.168.10.11:31852", model.TCP, plan.Forward},
		{"clients", client, "192.168.10.11:22", model.TCP, plan.Forward},
		{"clients", client, "192.168.10.11:30082", model.TCP, plan.Reject},
		{"clients", client, "192.168.10.11:30084", model.TCP, plan.Drop},
		{"clients", client, "192.0.2.1:30082", model.TCP, plan.Reject},
		{"clients", client, "192.0.2.3:80", model.TCP, plan.Reject},
		{"clients", other, "192.0.2.3:80", model.TCP, plan.Drop},
		{"clients", client, "192.0.2.4:80", model.TCP, plan.Drop},
		{"clients", "2001:db8:77::7", "[2001:db8:1b::1]:31852", model.TCP, plan.Forward},
		{"clients", "2001:db8:77::7", "[2001:db8:1b::1]:22", model.TCP, plan.Reject},
		{"clients", "2001:db8:77:1::7", "[2001:db8:1b::3]:80", model.TCP, plan.Drop},
		{"clients", "2001:db8:77::7", "[fd00:96::1]:22", model.UDP, plan.Reject},
		{"clients", "2001:db8:77::7", "[2001:db8:1b::4]:80", model.UDP, plan.Reject}, // of UDP there is no Service
		{"clients", "2001:db8:77::7", "[2001:db8:1b::4]:80", model.TCP, plan.Drop},
		{"node-a", "", "10.96.0.1:22", model.TCP, plan.Reject},
		{"node-a", "", "10.96.0.2:80", model.TCP, plan.Reject},
		{"node-a", "", "10.96.0.99:80", model.TCP, plan.Drop},
		{"node-a", "", "192.0.2.3:80", model.TCP, plan.Drop},
		{"node-a", "", "192.0.2.1:31852", model.TCP, plan.Forward},
		{"node-a", "", "192.168.10.11:30082", model.TCP, plan.Reject},
		{"node-a", "", "[fd00:96::2]:80", model.TCP, plan.Reject},
		{"node-a", "", "127.0.0.1:22", model.TCP, plan.Forward},
	} {
		d := lab.Dial{To: netip.MustParseAddrPort(tt.to), Protocol: tt.protocol}
		if tt.from != "" {
			d.From = netip.MustParseAddr(tt.from)
		}
		if tt.want == plan.Drop {
			d.Timeout = lab.Silence(tt.protocol)
		}
		wg.Go(func() {
			got, err := l.Host(tt.host).Dial(d)
			for range 5 { // the kernel limits how many ICMP errors a client gets
				if err != nil || got.Action != plan.Drop || tt.want != plan.Reject {
					break
				}
				got, err = l.Host(tt.host).Dial(d)
			}
			if err != nil || got.Action != tt.want {
				t.Errorf("%s to %s/%s: %v, %v, want %s", tt.host, tt.to, tt.protocol, got, err, tt.want)
			}
		})
	}
	pings(t, l, map[string]plan.Action{
		"10.96.0.1": plan.Forward, "192.0.2.4": plan.Forward, "10.96.0.99": plan.Drop,
		"fd00:96::1": plan.Forward, "2001:db8:1b::4": plan.Forward, "fd00:96::99": plan.Drop,
	})
}

// serviceCIDRs are those of the lab.
func serviceCIDRs() model.Delta {
	return model.Delta{ServiceCIDRs: map[string]*model.ServiceCIDR{"kubernetes": {Name: "kubernetes", Prefixes: []netip.Prefix{
		netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112"),
	}}}}
}

// pings has a pod, a client outside and the node itself ping addresses.
func pings(t *testing.T, l *lab.Lab, want map[string]plan.Action) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	from := map[string][2]string{"pods-a": {"10.244.1.50", "fd00:244:0:1::50"}, "clients": {"203.0.113.7", "2001:db8:77::7"}, "node-a": {}}
	for host, addresses := range from {
		for text, action := range want {
			to := netip.MustParseAddr(text)
			var client netip.Addr
			if a := addresses[model.FamilyOf(to)]; a != "" {
				client = netip.MustParseAddr(a)
			}
			wg.Go(func() {
				if got, err := l.Host(host).Ping(client, to); err != nil || got.Action != action {
					t.Errorf("%s pings %s: %v, %v, want %s", host, to, got, err, action)
				}
			})
		}
	}
}
