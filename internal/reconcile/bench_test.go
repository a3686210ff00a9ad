package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
)

// idle is a backend that does nothing, so that what the loop itself costs is left.
type idle struct{ *kernel }

func (idle) Compile(*plan.Plan) backend.Ruleset { return ruleset{} }

func (idle) Apply(context.Context, backend.Ruleset, backend.Request) (backend.Result, error) {
	return backend.Result{Written: 1}, nil
}

// BenchmarkChange is one changed endpoint of one Service, on its way from the source to the backend and to the status.
// It must not depend on the number of Services.
func BenchmarkChange(b *testing.B) {
	for _, services := range []int{1000, 50_000} {
		b.Run(fmt.Sprint(services), func(b *testing.B) {
			l := New(Config{
				SyncPeriod: time.Hour, Backend: idle{}, Planner: plan.NewPlanner(plan.Config{}), Log: slog.New(slog.DiscardHandler),
				Sweep: func(context.Context, func(flows.Flow) flows.Reason) (removed [2]int, err error) { return removed, nil },
			})
			snap := bigSnapshot(services)
			l.absorb(Event{Input: &Input{Delta: model.Delta(*snap)}})
			l.sync(b.Context())
			changes := [2]Event{}
			for i := range changes {
				_, slice := service("s7", 7, uint16(5300+i))
				changes[i].Input = &Input{Delta: model.Delta{Slices: map[model.Name]*model.Slice{slice.Name: slice}}}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.absorb(changes[i%2])
				l.sync(b.Context())
			}
			if sum := l.Summary(); sum.Applies < b.N || sum.Ports[Done] != services {
				b.Errorf("%+v after %d changes", sum, b.N)
			}
		})
	}
}

func bigSnapshot(services int) *model.Snapshot {
	snap := model.NewSnapshot()
	for i := range services {
		s, slice := service(fmt.Sprint("s", i), 0, 5299)
		s.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 97, byte(i >> 8), byte(i)})}
		snap.Services[s.Name], snap.Slices[s.Name] = s, slice
	}
	return snap
}
