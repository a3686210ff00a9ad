package iptables

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// The big cluster of the benchmarks.
const (
	benchServices  = 5000
	benchEndpoints = 10
)

// bigCluster is a Planner of it, and two changes that replace one endpoint of one Service and put it back.
func bigCluster(services int) (*plan.Planner, [2]model.Delta) {
	snap := model.NewSnapshot()
	for i := range services {
		name := model.Name{Namespace: "bench", Name: fmt.Sprint("service-", i)}
		s, sl := service(model.IPv4, []string{"10.96.0.1"})
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

// BenchmarkKernel is what the kernel and its programs take, beside a bare iptables-restore of the same tables into a
// namespace where there is nothing: each figure is also given as a multiple of that one.
func BenchmarkKernel(b *testing.B) {
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		b.Run(string(v), func(b *testing.B) {
			p, deltas := bigCluster(benchServices)
			r := Compile(p.Plan(), DefaultOptions())
			bare := took(b, newNode(b, v), func(ctx context.Context, d Deps) error {
				var text bytes.Buffer
				if err := r.RenderFamily(&text, model.IPv4); err != nil {
					return err
				}
				return d.Tables[0].(programs).Tools.Restore(ctx, iptexec.IPv4, text.Bytes(), iptexec.RestoreOptions{Flush: true})
			})
			n := newNode(b, v)
			apply := func(recheck bool) func(context.Context, Deps) error {
				return func(ctx context.Context, _ Deps) error {
					_, err := n.backend.Apply(ctx, r, recheck)
					return err
				}
			}
			report := func(what string, d time.Duration) {
				b.ReportMetric(d.Seconds(), what+"-s")
				b.ReportMetric(d.Seconds()/bare.Seconds(), what+"/bare")
			}
			for b.Loop() {
				report("bare", bare)
				report("first", took(b, n, apply(false)))
				r.Update(p.Plan(), p.Update(deltas[0]))
				report("endpoint", took(b, n, apply(false)))
				report("nothing", took(b, n, apply(false)))
				report("recheck", took(b, n, apply(true)))
				n.restart()
				report("restart", took(b, n, apply(false)))
			}
		})
	}
}

func took(b *testing.B, n *node, f func(context.Context, Deps) error) time.Duration {
	b.Helper()
	start := time.Now()
	n.do(func(ctx context.Context) error { return f(ctx, n.deps) })
	return time.Since(start)
}
