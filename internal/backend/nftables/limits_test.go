package nftables

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

// manyServices are Services with one endpoint each.
func manyServices(n int, edit func(int, *model.Service)) model.Delta {
	d := model.Delta(*model.NewSnapshot())
	for i := range n {
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.1", "10.244.1.5"})
		s.Name.Name = fmt.Sprintf("web-%04d", i)
		sl.Name, sl.Service = s.Name, s.Name
		s.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})}
		edit(i, s)
		d.Services[s.Name], d.Slices[sl.Name] = s, sl
	}
	return d
}

// TestTooManyBuckets: with more ways to balance than there are numbers, some lists have a chain of their own. Who
// comes later shares one if there is room by then.
func TestTooManyBuckets(t *testing.T) {
	p := plan.NewPlanner(plan.Config{})
	keep := func(i int, s *model.Service) { s.Affinity = time.Duration(i+1) * time.Second }
	p.Update(manyServices(1100, keep))
	r := Compile(p.Plan(), DefaultOptions())
	own := func() (n int) {
		for _, port := range r.ports {
			if port.lists[0].bucket == bucketRoundRobin {
				n++
			}
		}
		return n
	}
	const room = 1021
	if len(r.ports) != 1100 || len(r.problems) != 0 || own() != 1100-room {
		t.Fatalf("%d ports and %d problems; %d lists have a chain of their own, want %d", len(r.ports), len(r.problems), own(), 1100-room)
	}
	gone := model.Delta(*model.NewSnapshot())
	for id := range 200 {
		gone.Services[model.Name{Namespace: "default", Name: fmt.Sprintf("web-%04d", id)}] = nil
	}
	r.Update(p.Plan(), p.Update(gone))
	had := own()
	r.Update(p.Plan(), p.Update(manyServices(200, keep)))
	if len(r.ports) != 1100 || own() != had {
		t.Errorf("later %d ports, and %d lists have a chain of their own, want %d", len(r.ports), own(), had)
	}
}

// TestTooManyLists: a port that gets no number for one of its lists keeps nothing of what it took before.
func TestTooManyLists(t *testing.T) {
	p := plan.NewPlanner(plan.Config{})
	p.Update(manyServices(3, func(int, *model.Service) {}))
	r := Compile(p.Plan(), DefaultOptions())
	r.lists.max = 3
	before := r.buckets.uses
	twoLists := func(_ int, s *model.Service) {
		s.Type, s.ExternalPolicy, s.Ports[0].NodePort = model.NodePort, model.PolicyLocal, 30080
	}
	change := manyServices(1, twoLists)
	for _, sl := range change.Slices {
		sl.Endpoints[0].Node = ""
		sl.Endpoints = append(sl.Endpoints, sl.Endpoints[0])
		sl.Endpoints[0].Address, sl.Endpoints[0].Node = netip.MustParseAddr("10.244.1.7"), "node-a"
	}
	change.Nodes["node-a"] = &model.Node{Name: "node-a"}
	r.Update(p.Plan(), p.Update(change))
	if len(r.ports) != 2 || len(r.problems) != 1 {
		t.Fatalf("%d ports, problems %v; want one problem", len(r.ports), r.problems)
	}
	before[firstBucket]-- // a list of one endpoint less
	if before != r.buckets.uses {
		t.Error("a bucket stays in use")
	}
	r.Update(p.Plan(), p.Update(manyServices(1, func(int, *model.Service) {})))
	if len(r.ports) != 3 || len(r.problems) != 0 {
		t.Errorf("later %d ports, problems %v", len(r.ports), r.problems)
	}
}

// TestTooManyAffineEndpoints: 4095 endpoints of a list can be told apart; more are served without session affinity.
func TestTooManyAffineEndpoints(t *testing.T) {
	for n, sticky := range map[int]bool{4095: true, 4096: false} {
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.10"})
		s.Affinity = time.Hour
		for i := range n {
			sl.Endpoints = append(sl.Endpoints, endpointAt(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)})))
		}
		r := Compile(planOf(s, sl), DefaultOptions())
		if len(r.ports) != 1 || len(r.problems) != 0 {
			t.Fatalf("%d endpoints: %d ports, problems %v", n, len(r.ports), r.problems)
		}
		for _, port := range r.ports {
			if l := port.lists[0]; l.slotCount() != n || (l.affine != nil) != sticky || (r.buckets.byNumber[l.bucket].timeout != 0) != sticky {
				t.Errorf("%d endpoints: %d slots, %d numbers of endpoints, bucket %v", n, l.slotCount(), len(l.affine), r.buckets.byNumber[l.bucket])
			}
		}
	}
}

// TestSizesGrow: sets are made with room, and made anew before they are full.
func TestSizesGrow(t *testing.T) {
	p := plan.NewPlanner(plan.Config{})
	p.Update(manyServices(10, func(int, *model.Service) {}))
	r := Compile(p.Plan(), DefaultOptions())
	r.takeDirty()
	r.Update(p.Plan(), p.Update(manyServices(20, func(int, *model.Service) {})))
	if d := r.takeDirty(); d.table || len(d.ports) != 10 {
		t.Errorf("for 10 more Services the table is made anew: %v; %d ports are dirty", d.table, len(d.ports))
	}
	r.Update(p.Plan(), p.Update(manyServices(3100, func(int, *model.Service) {})))
	if d := r.takeDirty(); !d.table {
		t.Error("for 3100 Services the table is as it was")
	}
	services := setServices.of(model.IPv4)
	if size := r.contents().sizes[services]; size != 2*minSizes[services] {
		t.Errorf("there is room for %d frontends, want %d", size, 2*minSizes[services])
	}
}

// TestWeightsInTurn: slots of a list that takes turns keep the order that spaces endpoints by weight.
func TestWeightsInTurn(t *testing.T) {
	p, q := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("10.0.0.2:80")
	s := newStocks(DefaultOptions(), bucketTable{})
	var old, now list
	id := plan.PortID{Family: model.IPv4}
	turns := &plan.Port{ID: id, Balancing: model.BalanceRoundRobin}
	before := []plan.Endpoint{{AddrPort: p, Weight: 1}, {AddrPort: q, Weight: 1}}
	after := []plan.Endpoint{{AddrPort: p, Weight: 2}, {AddrPort: q, Weight: 3}}
	for _, err := range []error{s.compileList(&old, turns, before, &list{}), s.compileList(&now, turns, after, &old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range plan.Spread(after) {
		if now.at(i) != e.AddrPort {
			t.Errorf("slot %d is %s, want %s", i, now.at(i), e.AddrPort)
		}
	}
	if now.number != old.number {
		t.Errorf("list %d became %d", old.number, now.number)
	}
}

// TestManyEndpoints: once the map of endpoints is larger than at first, the chains for few slots are there whether they
// are needed or not, also when a new process takes over the table of fewer endpoints.
func TestManyEndpoints(t *testing.T) {
	p := plan.NewPlanner(plan.Config{})
	p.Update(manyServices(1, func(int, *model.Service) {}))
	r := Compile(p.Plan(), DefaultOptions())
	if got := randomChains(r); got != 1 {
		t.Errorf("%d chains for one endpoint, want 1", got)
	}
	many := manyServices(1, func(int, *model.Service) {})
	for _, sl := range many.Slices {
		for i := range minSizes[setEndpoints] {
			sl.Endpoints = append(sl.Endpoints, endpointAt(netip.AddrFrom4([4]byte{10, 244, 128 + byte(i>>8), byte(i)})))
		}
	}
	r.Update(p.Plan(), p.Update(many))
	if got := randomChains(r); !r.dirty.table || got != standingBuckets+1 {
		t.Errorf("%d chains, want %d; the table is made anew: %t", got, standingBuckets+1, r.dirty.table)
	}
	h := newHeld()
	h.size(setEndpoints, 2*minSizes[setEndpoints])
	p.Update(manyServices(1, func(int, *model.Service) {}))
	r = Compile(p.Plan(), DefaultOptions())
	if r.adopt(h); randomChains(r) != standingBuckets {
		t.Errorf("%d chains in a table that was taken over, want %d", randomChains(r), standingBuckets)
	}
}

// randomChains counts the chains that pick slots at random.
func randomChains(r *Ruleset) (n int) {
	for ch := range r.contents().chains {
		if b, ok := bucketOf(ch.Name); ok && b.timeout == 0 {
			n++
		}
	}
	return n
}
