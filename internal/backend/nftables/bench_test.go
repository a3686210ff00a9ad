package nftables

import (
	"fmt"
	"io"
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// The big cluster of the benchmarks.
const (
	benchServices  = 10000
	benchEndpoints = 10
)

// bigCluster is a Planner of it, and two changes that replace one endpoint of one Service and put it back.
func bigCluster(services int) (*plan.Planner, [2]model.Delta) {
	snap := model.NewSnapshot()
	for i := range services {
		name := model.Name{Namespace: "bench", Name: fmt.Sprint("service-", i)}
		s, sl := webService(model.IPv4, []string{"10.96.0.1"})
		s.Name, sl.Name, sl.Service = name, name, name
		s.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 100, byte(i >> 8), byte(i)})}
		for e := range benchEndpoints {
			sl.Endpoints = append(sl.Endpoints, model.Endpoint{
				Address: netip.AddrFrom4([4]byte{10, 128 + byte(e), byte(i >> 8), byte(i)}), Ready: true, Serving: true,
			})
		}
		snap.Services[name], snap.Slices[name] = s, sl
	}
	p := plan.NewPlanner(plan.Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}})
	p.Update(model.Delta(*snap))
	name := model.Name{Namespace: "bench", Name: "service-7"}
	other := *snap.Slices[name]
	other.Endpoints = append([]model.Endpoint{}, other.Endpoints...)
	other.Endpoints[3].Address = netip.MustParseAddr("10.200.0.1")
	return p, [2]model.Delta{
		{Slices: map[model.Name]*model.Slice{name: &other}},
		{Slices: map[model.Name]*model.Slice{name: snap.Slices[name]}},
	}
}

func BenchmarkCompile(b *testing.B) {
	p, _ := bigCluster(benchServices)
	b.ReportAllocs()
	for b.Loop() {
		Compile(p.Plan(), DefaultOptions())
	}
}

// BenchmarkElements makes all elements, as loading the table does.
func BenchmarkElements(b *testing.B) {
	p, _ := bigCluster(benchServices)
	r := Compile(p.Plan(), DefaultOptions())
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		c, refs := r.contents(), references{}
		for set := range setCount {
			for range c.elements(set, refs) {
				n++
			}
		}
	}
	b.ReportMetric(float64(n)/float64(b.N), "elements")
}

// BenchmarkUpdateEndpoint is what a changed endpoint costs up to what is to be written.
func BenchmarkUpdateEndpoint(b *testing.B) {
	for _, services := range []int{100, benchServices} {
		b.Run(fmt.Sprint("services=", services), func(b *testing.B) {
			p, deltas := bigCluster(services)
			r := Compile(p.Plan(), DefaultOptions())
			k := load(b, r)
			r.takeDirty()
			var d delta
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				changes := p.Update(deltas[i%2])
				b.StartTimer()
				r.Update(p.Plan(), changes)
				d.reset()
				for id := range r.takeDirty().ports {
					d.port(k.applied[id], r.ports[id])
					k.applied[id] = r.ports[id]
				}
				d.buckets(&k.buckets, &r.buckets.byNumber)
				d.finish(k.refs)
				k.refs.commit(&d)
			}
			if n := d.size(); n != 3 {
				b.Fatalf("%d objects differ, want 3", n)
			}
		})
	}
}

func BenchmarkRender(b *testing.B) {
	p, _ := bigCluster(benchServices)
	r := Compile(p.Plan(), DefaultOptions())
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Render(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
