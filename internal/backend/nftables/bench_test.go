package nftables

import (
	"fmt"
	"io"
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/crowd"
)

// The big cluster of the benchmarks.
const (
	benchServices  = 10000
	benchEndpoints = 10
)

// bigCluster is a Planner of it, and two changes that replace one endpoint of one Service and put it back.
func bigCluster(services int) (*plan.Planner, [2]model.Delta) {
	c := crowd.Crowd{Services: services, Endpoints: benchEndpoints}
	p := plan.NewPlanner(plan.Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}})
	p.Update(model.Delta(*c.Snapshot()))
	return p, [2]model.Delta{c.Change(7, 1), c.Change(7, 0)}
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
