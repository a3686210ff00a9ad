package model

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// Whatever changes, the difference leads from the old Snapshot to the new one, and says no more than that.
func TestDiffLeadsFromOldToNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawSnapshot(t), drawSnapshot(t)
		d := Diff(old, new)
		got := old.Clone()
		got.Apply(d)
		if again := Diff(got, new); size(again) != 0 {
			t.Fatalf("after the difference is applied there is still %+v", again)
		}
		if same := Diff(new, new.Clone()); size(same) != 0 {
			t.Fatalf("a Snapshot differs from its clone: %+v", same)
		}
		for name, s := range d.Services {
			if was := old.Services[name]; was != nil && s != nil && was.Type == s.Type {
				t.Fatalf("Service %s is in the difference, with equal content", name)
			}
		}
	})
}

func size(d Delta) int { return len(d.Services) + len(d.Slices) + len(d.Nodes) + len(d.ServiceCIDRs) }

func drawSnapshot(t *rapid.T) *Snapshot {
	s := NewSnapshot()
	for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "names") {
		name := Name{"ns", n}
		s.Services[name] = &Service{Name: name, Type: rapid.SampledFrom([]ServiceType{ClusterIP, NodePort}).Draw(t, "type")}
		s.Slices[name] = &Slice{Name: name, Endpoints: make([]Endpoint, rapid.IntRange(0, 1).Draw(t, "endpoints"))}
		s.Nodes[n] = &Node{Name: n, Zone: rapid.SampledFrom([]string{"", "z"}).Draw(t, "zone")}
		s.ServiceCIDRs[n] = &ServiceCIDR{Name: n, Prefixes: make([]netip.Prefix, rapid.IntRange(0, 1).Draw(t, "prefixes"))}
	}
	return s
}

func TestWeightOf(t *testing.T) {
	s := &Service{Weights: []Weight{
		{Address: netip.MustParseAddr("10.0.0.1"), Value: 7},
		{Pod: "web-1", Value: 6},
		{Pod: "web-*", Value: 5},
		{Node: "node-a", Value: 4},
	}}
	for _, tt := range []struct {
		endpoint Endpoint
		want     uint16
	}{
		{Endpoint{Address: netip.MustParseAddr("10.0.0.1"), Pod: "web-1"}, 7},
		{Endpoint{Address: netip.MustParseAddr("10.0.0.2"), Pod: "web-1"}, 6},
		{Endpoint{Pod: "web-12", Node: "node-a"}, 5},
		{Endpoint{Pod: "web", Node: "node-a"}, 4},
		{Endpoint{Pod: "web", Node: "node-b"}, 1},
		{Endpoint{}, 1},
	} {
		if got := s.WeightOf(&tt.endpoint); got != tt.want {
			t.Errorf("%+v: weight %d, want %d", tt.endpoint, got, tt.want)
		}
	}
	if all := (&Service{Weights: []Weight{{Pod: "*", Value: 3}}}); all.WeightOf(&Endpoint{}) != 3 {
		t.Error("* does not name an endpoint without a Pod")
	}
}

// BenchmarkDiff is one changed object among others.
func BenchmarkDiff(b *testing.B) {
	old := NewSnapshot()
	for i := range 10_000 {
		name := Name{"bench", fmt.Sprint("s", i)}
		old.Services[name], old.Slices[name] = &Service{Name: name}, &Slice{Name: name}
	}
	now := &Snapshot{Services: old.Services, Slices: maps.Clone(old.Slices), Nodes: old.Nodes, ServiceCIDRs: old.ServiceCIDRs}
	changed := Name{"bench", "s7"}
	now.Slices[changed] = &Slice{Name: changed, Family: IPv6}
	b.ReportAllocs()
	for b.Loop() {
		if d := Diff(old, now); size(d) != 1 {
			b.Fatalf("%d objects differ, want 1", size(d))
		}
	}
}
