package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
)

// A configured address is the node's first of its family, with a Node object and without.
func TestNodeIP(t *testing.T) {
	six := netip.MustParseAddr("fd00:10::99")
	host := Host{Primary: [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}
	cfg := config
	cfg.NodeIP = six
	for name, tt := range map[string]struct {
		s    *model.Snapshot
		four string
	}{
		"a Node":  {snapshot(nodeA), "192.168.10.11"},
		"no Node": {model.NewSnapshot(), "192.0.2.1"},
	} {
		want := [2]netip.Addr{netip.MustParseAddr(tt.four), six}
		if n := newNode(cfg, host, tt.s); n.Primary != want {
			t.Errorf("with %s the first addresses are %v, want %v", name, n.Primary, want)
		}
	}
}

// External IPs come and go with the policy, and whoever else wants the frontend gets it meanwhile.
func TestExternalIPsCanBeIgnored(t *testing.T) {
	const addr = "203.0.113.7"
	external := service(func(s *model.Service) { s.ExternalIPs = addrs(addr) })
	balanced := service(func(s *model.Service) {
		s.Name.Name, s.Type, s.ClusterIPs, s.LoadBalancerIPs = "zz", model.LoadBalancer, addrs("10.96.0.11"), addrs(addr)
	})
	s := snapshot(nodeA, external, balanced)
	key := Key{netip.MustParseAddr(addr), model.TCP, 80}
	p := NewPlanner(config)
	p.Update(model.Delta(*s))
	ignoring := config
	ignoring.IgnoreExternalIPs = true
	for _, step := range []struct {
		cfg   Config
		owner string
		kind  Kind
	}{{config, "web", ExternalIP}, {ignoring, "zz", LoadBalancerIP}, {config, "web", ExternalIP}} {
		p.SetConfig(step.cfg)
		port, f, ok := p.Plan().Owner(key)
		if !ok || port.ID.Service.Name != step.owner || f.Kind != step.kind {
			t.Errorf("ignoring %v: %v has %v, want %s", step.cfg.IgnoreExternalIPs, port, f.Kind, step.owner)
		}
		full := Build(step.cfg, Host{}, s)
		if diff := cmp.Diff(full, p.Plan(), comparers, cmp.AllowUnexported(Plan{})); diff != "" {
			t.Errorf("ignoring %v: plan (-full +incremental):\n%s", step.cfg.IgnoreExternalIPs, diff)
		}
	}
}
