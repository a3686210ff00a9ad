package plan

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"sluice/internal/model"
)

// BenchmarkUpdateEndpoint is one endpoint replaced beside other Services: the same at any number of them.
func BenchmarkUpdateEndpoint(b *testing.B) {
	for _, services := range []int{1_000, 50_000} {
		b.Run(fmt.Sprint(services), func(b *testing.B) {
			p, deltas := benchPlanner(services)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if c := p.Update(deltas[i%2]); len(c.Ports) != 1 {
					b.Fatalf("changed %d ports, want 1", len(c.Ports))
				}
			}
		})
	}
}

// benchEndpoints are ten.
func benchEndpoints(first byte) []model.Endpoint {
	es := make([]model.Endpoint, 10)
	for i := range es {
		es[i] = model.Endpoint{Address: netip.AddrFrom4([4]byte{10, 244, first, byte(i)}), Ready: true, Serving: true}
	}
	return es
}

func benchSnapshot(services int) *model.Snapshot {
	snap := snapshot()
	for i := range services {
		name := model.Name{Namespace: "bench", Name: fmt.Sprint("s", i)}
		snap.Services[name] = service(func(s *model.Service) {
			s.Name, s.ClusterIPs = name, []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})}
		})
		sl := slice(benchEndpoints(1)...)
		sl.Name, sl.Service = name, name
		snap.Slices[name] = sl
	}
	return snap
}

func benchPlanner(services int) (*Planner, [2]model.Delta) {
	snap := benchSnapshot(services)
	p := NewPlanner(config)
	p.Update(model.Delta(*snap))
	name := model.Name{Namespace: "bench", Name: "s7"}
	other := *snap.Slices[name]
	other.Endpoints = benchEndpoints(2)
	return p, [2]model.Delta{
		{Slices: map[model.Name]*model.Slice{name: &other}},
		{Slices: map[model.Name]*model.Slice{name: snap.Slices[name]}},
	}
}

// BenchmarkHeap is what 10,000 Services with ten endpoints each hold: as a Snapshot, and with the plan of it.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		empty := heap()
		snap := benchSnapshot(10_000)
		read := heap()
		p := NewPlanner(config)
		p.Update(model.Delta(*snap))
		b.ReportMetric(float64(read-empty)/(1<<20), "MiB-model")
		b.ReportMetric(float64(heap()-read)/(1<<20), "MiB-plan")
		runtime.KeepAlive(p)
		runtime.KeepAlive(snap)
	}
}

// heap is how much is in use once everything else is collected.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
