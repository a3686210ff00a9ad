package plan

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
)

func serviceCIDR(name string, texts ...string) *model.ServiceCIDR {
	c := &model.ServiceCIDR{Name: name}
	for _, text := range texts {
		c.Prefixes = append(c.Prefixes, netip.MustParsePrefix(text))
	}
	return c
}

func TestGuardClusterIPs(t *testing.T) {
	cfg := config
	cfg.GuardClusterIPs = true
	host := Host{Addresses: addrs("192.168.10.11", "10.96.0.10", "10.96.0.200", "fd00:10::11")}
	empty := service(func(s *model.Service) {
		s.Name.Name, s.ClusterIPs = "empty", addrs("10.96.0.20", "fd00:96::20")
		s.ExternalIPs = addrs("10.96.0.30", "198.51.100.1")
	})
	nodePort := service(func(s *model.Service) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 })
	objects := []any{
		empty, nodePort, slice(endpoint("10.244.1.1", "node-a", "rs")),
		serviceCIDR("kubernetes", "10.96.0.0/16", "fd00:96::/112"),
	}
	for name, tt := range map[string]struct {
		from, to string
		guard    Guard
		action   Action
	}{
		"another port":                            {"10.244.1.9", "10.96.0.20:81", GuardPort, Reject},
		"another port, no endpoints":              {"10.244.1.9", "[fd00:96::20]:81", GuardPort, Reject},
		"another port, from outside":              {"203.0.113.5", "10.96.0.20:81", GuardPort, Reject},
		"another port, from the node":             {"192.168.10.11", "10.96.0.20:81", GuardPort, Reject},
		"another port of an address of the node":  {"10.244.1.9", "10.96.0.10:81", GuardPort, Reject},
		"a node port at a cluster IP of the node": {"10.244.1.9", "10.96.0.10:30080", Unguarded, Forward},
		"the port":                                 {"10.244.1.9", "10.96.0.10:80", Unguarded, Forward},
		"the port, no endpoints":                   {"10.244.1.9", "10.96.0.20:80", Unguarded, Reject},
		"nobody's address":                         {"10.244.1.9", "10.96.0.99:80", GuardRange, Drop},
		"nobody's address, IPv6":                   {"fd00:244:1::9", "[fd00:96::99]:80", GuardRange, Drop},
		"nobody's address, from the node":          {"192.168.10.11", "10.96.0.99:80", GuardRange, Drop},
		"an address of the node in the range":      {"10.244.1.9", "10.96.0.200:80", Unguarded, Unhandled},
		"another port of an external IP in it":     {"10.244.1.9", "10.96.0.30:81", Unguarded, Unhandled},
		"another port of an external IP elsewhere": {"10.244.1.9", "198.51.100.1:81", Unguarded, Unhandled},
		"an address of no Service":                 {"10.244.1.9", "10.97.0.1:80", Unguarded, Unhandled},
	} {
		t.Run(name, func(t *testing.T) {
			pkt := packet(tt.from, tt.to)
			if d := Build(cfg, host, snapshot(objects...)).Decide(pkt); d.Guard != tt.guard || d.Action != tt.action {
				t.Errorf("guarded: %v %s, want %v %s", d.Guard, d.Action, tt.guard, tt.action)
			}
			want := tt.action
			if tt.guard != Unguarded {
				want = Unhandled
			}
			if d := Build(config, host, snapshot(objects...)).Decide(pkt); d.Guard != Unguarded || d.Action != want {
				t.Errorf("in a mode that does not guard: %v %s, want %s", d.Guard, d.Action, want)
			}
		})
	}
}

// An address is guarded until the last Service that has it is gone, and a change of ports alone leaves it so.
func TestGuardFollowsServices(t *testing.T) {
	cfg := config
	cfg.GuardClusterIPs = true
	p := NewPlanner(cfg)
	other := service(func(s *model.Service) { s.Name.Name, s.Ports[0].Port = "other", 82 })
	moved := service(func(s *model.Service) { s.Ports[0].Port = 83 })
	update := func(want Guard, services map[model.Name]*model.Service) {
		t.Helper()
		p.Update(model.Delta{Services: services})
		if d := p.Plan().Decide(packet("10.244.1.9", "10.96.0.10:81")); d.Guard != want {
			t.Errorf("guard %v, want %v", d.Guard, want)
		}
	}
	p.Update(model.Delta{ServiceCIDRs: map[string]*model.ServiceCIDR{"a": serviceCIDR("a", "10.96.0.0/16")}})
	update(GuardRange, nil)
	update(GuardPort, map[model.Name]*model.Service{web: service()})
	update(GuardPort, map[model.Name]*model.Service{other.Name: other})
	update(GuardPort, map[model.Name]*model.Service{web: moved})
	update(GuardPort, map[model.Name]*model.Service{web: nil})
	update(GuardRange, map[model.Name]*model.Service{other.Name: nil})
}

func TestServiceCIDRs(t *testing.T) {
	objects := []any{
		serviceCIDR("a", "10.96.0.0/16", "fd00:96::/108"),
		serviceCIDR("b", "10.96.7.9/16", "10.96.5.0/24", "10.95.0.0/16", "fd00:96::/112"),
		serviceCIDR("c", "10.0.0.0/24", "10.96.255.255/32", "10.97.0.0/24"),
	}
	texts := func(p *Plan) (all [2][]string) {
		for f, ranges := range p.Node.ServiceCIDRs {
			for _, r := range ranges {
				all[f] = append(all[f], r.String())
			}
		}
		return all
	}
	want := [2][]string{{"10.0.0.0/24", "10.95.0.0/16", "10.96.0.0/16", "10.97.0.0/24"}, {"fd00:96::/108"}}
	if diff := cmp.Diff(want, texts(Build(config, Host{}, snapshot(objects...)))); diff != "" {
		t.Errorf("union (-want +got):\n%s", diff)
	}
	p := NewPlanner(config)
	p.Update(model.Delta(*snapshot(objects...)))
	if c := p.Update(model.Delta{ServiceCIDRs: map[string]*model.ServiceCIDR{"c": nil}}); !c.Node {
		t.Error("a range that is gone does not count as a change of the node")
	}
	if c := p.Update(model.Delta{ServiceCIDRs: map[string]*model.ServiceCIDR{"d": serviceCIDR("d", "10.96.0.0/16")}}); !c.Empty() {
		t.Errorf("the same range in another object makes changes: %+v", c)
	}
	p.Update(model.Delta{ServiceCIDRs: map[string]*model.ServiceCIDR{"a": nil}})
	want = [2][]string{{"10.95.0.0/16", "10.96.0.0/16"}, {"fd00:96::/112"}}
	if diff := cmp.Diff(want, texts(p.Plan())); diff != "" {
		t.Errorf("after two objects went (-want +got):\n%s", diff)
	}
}

func TestWithoutContained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOf(rapid.Custom(func(t *rapid.T) netip.Prefix {
			a := netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "address")})
			return netip.PrefixFrom(a, rapid.IntRange(24, 32).Draw(t, "bits")).Masked()
		})).Draw(t, "prefixes")
		kept := WithoutContained(ps)
		for i := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			in := func(p netip.Prefix) bool { return p.Contains(a) }
			if slices.ContainsFunc(ps, in) != slices.ContainsFunc(kept, in) {
				t.Fatalf("%s is in one of %v and %v only", a, ps, kept)
			}
		}
		for i, p := range kept {
			if slices.ContainsFunc(kept[i+1:], p.Overlaps) {
				t.Fatalf("%v overlap", kept)
			}
		}
	})
}
