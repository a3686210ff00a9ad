package iptables

import (
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/crowd"
)

// The big cluster of the benchmarks. What it takes a kernel is measured in test/bench.
const (
	benchServices  = 5000
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

func BenchmarkUpdateEndpoint(b *testing.B) {
	p, deltas := bigCluster(benchServices)
	r := Compile(p.Plan(), DefaultOptions())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		changes := p.Update(deltas[i%2])
		b.StartTimer()
		r.Update(p.Plan(), changes)
	}
}
