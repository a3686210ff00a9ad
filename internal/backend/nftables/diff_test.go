package nftables

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

// summary is what a delta does, set by set.
func (d *delta) summary() (lines []string) {
	for _, c := range d.newChains {
		lines = append(lines, "make "+c.Name)
	}
	for _, c := range d.chains {
		lines = append(lines, "rewrite "+c.Name)
	}
	for set := range setCount {
		for i := range d.remove[set] {
			lines = append(lines, "- "+line(set, &d.remove[set][i]))
		}
	}
	for set := range setCount {
		for i := range d.add[set] {
			lines = append(lines, "+ "+line(set, &d.add[set][i]))
		}
	}
	for set := range setCount {
		for i := range d.last[set] {
			lines = append(lines, "last "+line(set, &d.last[set][i]))
		}
	}
	for _, name := range d.lastChains {
		lines = append(lines, "last "+name)
	}
	return lines
}

// TestDelta: a change of a Service writes no more than it must.
func TestDelta(t *testing.T) {
	addresses := []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"}
	newEndpoint := endpointAt(netip.MustParseAddr("10.244.0.9"))
	for _, tt := range []struct {
		name   string
		before func(*model.Service)
		change func(*model.Service, *model.Slice)
		want   []string
	}{
		{"an endpoint replaced", nil, func(_ *model.Service, sl *model.Slice) { sl.Endpoints[0] = newEndpoint }, []string{
			"- hairpin4 10.244.1.5 . 10.244.1.5 . tcp . 8080",
			"- endpoints4 0:1000 . 0 : 10.244.1.5 . 8080",
			"+ hairpin4 10.244.0.9 . 10.244.0.9 . tcp . 8080",
			"+ endpoints4 0:1000 . 0 : 10.244.0.9 . 8080",
		}},
		{"an endpoint more", nil, func(_ *model.Service, sl *model.Slice) { sl.Endpoints = append(sl.Endpoints, newEndpoint) }, []string{
			"make random-3",
			`- services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:100d`,
			"+ hairpin4 10.244.0.9 . 10.244.0.9 . tcp . 8080",
			"+ endpoints4 0:1000 . 2 : 10.244.0.9 . 8080",
			`+ services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:1011`,
			"+ buckets 0:10 : goto random-3",
		}},
		{"an endpoint less", nil, func(_ *model.Service, sl *model.Slice) { sl.Endpoints = sl.Endpoints[1:] }, []string{
			"make random-1",
			"- hairpin4 10.244.1.5 . 10.244.1.5 . tcp . 8080",
			"- endpoints4 0:1000 . 0 : 10.244.1.5 . 8080",
			`- services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:100d`,
			"+ endpoints4 0:1000 . 0 : 10.244.2.5 . 8080",
			`+ services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:1011`,
			"+ buckets 0:10 : goto random-1",
			"last endpoints4 0:1000 . 1 : 10.244.2.5 . 8080",
		}},
		{"no endpoint", nil, func(_ *model.Service, sl *model.Slice) { sl.Endpoints = nil }, []string{
			"- hairpin4 10.244.1.5 . 10.244.1.5 . tcp . 8080",
			"- hairpin4 10.244.2.5 . 10.244.2.5 . tcp . 8080",
			`- services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:100d`,
			`- connections 0:1000 counter packets 0 bytes 0 comment "default/web:http"`,
			`+ services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:0`,
			"last endpoints4 0:1000 . 0 : 10.244.1.5 . 8080",
			"last endpoints4 0:1000 . 1 : 10.244.2.5 . 8080",
		}},
		{"affinity", nil, func(s *model.Service, _ *model.Slice) { s.Affinity = time.Hour }, []string{
			"make affinity4-2-3600s",
			`- services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:100d`,
			"+ affine-endpoints4 0:1001 : 10.244.1.5 . 8080",
			"+ affine-endpoints4 0:1002 : 10.244.2.5 . 8080",
			"+ affine-slots4 0:1000 . 0 : 0:1001",
			"+ affine-slots4 0:1000 . 1 : 0:1002",
			`+ services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:1011`,
			"+ buckets 0:10 : goto affinity4-2-3600s",
		}},
		{"an endpoint less in turns", func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }, func(_ *model.Service, sl *model.Slice) { sl.Endpoints = sl.Endpoints[:1] }, []string{
			"rewrite round-robin-1",
			"- hairpin4 10.244.2.5 . 10.244.2.5 . tcp . 8080",
			"last endpoints4 0:1000 . 1 : 10.244.2.5 . 8080",
		}},
		{"no turns", func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }, func(s *model.Service, _ *model.Slice) { s.Balancing = model.BalanceRandom }, []string{
			"make random-2",
			`- services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:1009`,
			`+ services4 10.96.0.10 . tcp . 80 comment "default/web:http" : 0:100d`,
			"+ buckets 0:c : goto random-2",
			"last round-robin 0:1000 : goto round-robin-1",
			"last round-robin-1",
		}},
	} {
		s, sl := sample.Service(model.IPv4, addresses)
		if tt.before != nil {
			tt.before(s)
		}
		r := Compile(planOf(s, sl), DefaultOptions())
		k := load(t, r)
		now, nowSlice := *s, *sl
		nowSlice.Endpoints = append([]model.Endpoint{}, sl.Endpoints...)
		tt.change(&now, &nowSlice)
		p := planOf(&now, &nowSlice)
		id := p.Sorted()[0].ID
		r.Update(p, plan.Changes{Ports: []plan.Change{{ID: id, New: p.Ports[id]}}})
		var d delta
		d.port(k.applied[id], r.ports[id])
		d.buckets(&k.buckets, &r.buckets.byNumber)
		d.finish(k.refs)
		if diff := cmp.Diff(tt.want, d.summary()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestSharedElements: an element goes with the last of the ports that have it, and not before; and a delta that is thrown
// away changes no count.
func TestSharedElements(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	s.Ports = append(s.Ports, model.ServicePort{Name: "same", Protocol: model.TCP, Port: 81})
	sl.Ports = append(sl.Ports, model.SlicePort{Name: "same", Protocol: model.TCP, Port: 8080})
	r := Compile(planOf(s, sl), DefaultOptions())
	k := load(t, r)
	ports := sorted(r.ports)
	var d delta
	remove := func(gone ...*port) (shared []string) {
		d.reset()
		for _, p := range gone {
			d.port(p, nil)
		}
		d.finish(k.refs)
		for set := range setCount {
			for i := range d.remove[set] {
				if isShared(set) {
					shared = append(shared, line(set, &d.remove[set][i]))
				}
			}
		}
		return shared
	}
	both := []string{"hairpin4 10.244.1.5 . 10.244.1.5 . tcp . 8080", `cluster-ips4 10.96.0.10 comment "default/web"`}
	if got := remove(ports...); !cmp.Equal(got, both) {
		t.Errorf("with both ports go %q, want %q", got, both)
	}
	if got := remove(ports[0]); got != nil {
		t.Errorf("with one port go %q", got)
	}
	k.refs.commit(&d)
	if got := remove(ports[1]); !cmp.Equal(got, both) {
		t.Errorf("with the last port go %q, want %q", got, both)
	}
	if k.refs.commit(&d); len(k.refs) > 0 {
		t.Errorf("references are left: %v", k.refs)
	}
}
