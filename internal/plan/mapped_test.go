package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
)

// elsewhere leads all clients of a Service port to one place. It knows nothing of ports with the name p1.
func elsewhere(p *Port) *Port {
	if p.ID.Port == "p1" {
		return nil
	}
	m := *p
	m.Cluster, m.Local, m.Draining = nil, nil, nil
	if p.Uses(ListCluster) || p.Uses(ListLocal) {
		m.Cluster = []Endpoint{{AddrPort: netip.MustParseAddrPort("192.168.10.11:10000"), Weight: 1}}
	}
	return &m
}

// Whatever changes in a plan, the mapped one that follows is that which is mapped anew.
func TestMappedFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPlanner(config)
		m := p.Plan().Mapped(elsewhere)
		before := map[PortID]*Port{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			c := p.Update(drawDelta(t))
			if rapid.Bool().Draw(t, "addresses change") {
				more := p.SetHost(Host{Addresses: addrs(rapid.SampledFrom([]string{"192.168.10.11", "192.0.2.1"}).Draw(t, "address"))})
				c.Node, c.Ports = c.Node || more.Node, append(c.Ports, more.Ports...)
			}
			got := m.Follow(p.Plan(), c.Node, c.IDs(), elsewhere)
			follow(before, got)
			want := p.Plan().Mapped(elsewhere)
			if diff := cmp.Diff(want, m, comparers, cmp.AllowUnexported(Plan{})); diff != "" {
				t.Fatalf("mapped (-anew +following):\n%s", diff)
			}
			if diff := cmp.Diff(m.Ports, before, comparers); diff != "" {
				t.Fatalf("changes do not lead to the mapped plan (-plan +changes):\n%s", diff)
			}
			if again := m.Follow(p.Plan(), false, c.IDs(), elsewhere); !again.Empty() {
				t.Fatalf("following again makes changes: %+v", again)
			}
		}
	})
}

// Who answers at a frontend is what it was; a change of what is left out by the function is none.
func TestMappedSharesFrontends(t *testing.T) {
	p := NewPlanner(config)
	s := service()
	p.Update(model.Delta(*snapshot(s, slice(endpoint("10.244.1.1", "node-a", "rs")))))
	m := p.Plan().Mapped(elsewhere)
	to := netip.AddrPortFrom(s.ClusterIPs[0], s.Ports[0].Port)
	port, f, ok := m.Find(to, s.Ports[0].Protocol)
	if !ok || f.Kind != ClusterIP || port.Cluster[0].Port() != 10000 {
		t.Errorf("%s: %+v, %+v, %v; want the mapped port", to, port, f, ok)
	}
	c := p.Update(model.Delta(*snapshot(s, slice(endpoint("10.244.1.1", "node-a", "rs"), endpoint("10.244.1.2", "node-a", "rs")))))
	if c.Empty() {
		t.Fatal("another endpoint changes nothing")
	}
	if got := m.Follow(p.Plan(), c.Node, c.IDs(), elsewhere); !got.Empty() {
		t.Errorf("changes %+v, want none", got)
	}
}
