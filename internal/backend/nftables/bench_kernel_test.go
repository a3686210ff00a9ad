package nftables

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/nstest"
)

// bigRig is a cluster of so many Services with so many endpoints each, and changes to its Service number 7.
func bigRig(tb testing.TB, services, endpoints int) *rig {
	tb.Helper()
	all := model.Delta{Services: map[model.Name]*model.Service{}, Slices: map[model.Name]*model.Slice{}}
	for i := range services {
		d := serviceWith(i, bigEndpoints(i, endpoints), nil)
		all.Services[serviceName(i)], all.Slices[serviceName(i)] = d.Services[serviceName(i)], d.Slices[serviceName(i)]
	}
	return newRig(tb, all)
}

func bigEndpoints(i, n int) (all []netip.Addr) {
	for e := range n {
		all = append(all, netip.AddrFrom4([4]byte{10, 128 + byte(e), byte(i >> 8), byte(i)}))
	}
	return all
}

var bigSizes = []struct{ services, endpoints int }{{1000, 10}, {10_000, 10}, {50_000, 2}}

func eachSize(b *testing.B, f func(b *testing.B, w *rig)) {
	b.Helper()
	nstest.RequireRoot(b, "the send buffer of others is too small")
	for _, s := range bigSizes {
		w := bigRig(b, s.services, s.endpoints)
		b.Run(fmt.Sprintf("%dx%d", s.services, s.endpoints), func(b *testing.B) { f(b, w) })
	}
}

// cpu is the time of a processor that this process has taken, the kernel's part included.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkLoad fills an empty kernel; bare is the kernel's own part: the same transactions, made before.
func BenchmarkLoad(b *testing.B) {
	eachSize(b, func(b *testing.B, w *rig) {
		b.Helper()
		inKernel(b)
		var total, bare int64
		for b.Loop() {
			b.StopTimer()
			k, r := another(b), w.restarted().rules
			if err := k.Cleanup(b.Context()); err != nil {
				b.Fatal(err)
			}
			runtime.GC()
			b.StartTimer()
			start := cpu(b)
			apply(b, k, r)
			total += cpu(b) - start
			b.StopTimer()
			bare += bareLoad(b, k, r)
			b.StartTimer()
		}
		b.ReportMetric(float64(total)/float64(b.N)/1e6, "cpu-ms")
		b.ReportMetric(float64(bare)/float64(b.N)/1e6, "bare-ms")
	})
}

func bareLoad(b *testing.B, k *Backend, r *Ruleset) int64 {
	b.Helper()
	rec := &recorder{Socket: k.socket}
	k.socket = rec
	if err := k.Cleanup(context.Background()); err != nil {
		b.Fatal(err)
	}
	rec.record = true
	k.known = nil
	apply(b, k, r)
	rec.record = false
	if err := k.Cleanup(context.Background()); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	start := cpu(b)
	for _, batch := range rec.batches {
		if err := rec.Commit(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return cpu(b) - start
}

// recorder keeps what it sends.
type recorder struct {
	Socket
	record  bool
	batches [][]byte
}

func (r *recorder) Commit(ctx context.Context, batch []byte) error {
	if r.record {
		r.batches = append(r.batches, append([]byte(nil), batch...))
	}
	return r.Socket.Commit(ctx, batch)
}

// BenchmarkRestart is a new process that finds everything as it wants it.
func BenchmarkRestart(b *testing.B) {
	eachSize(b, func(b *testing.B, w *rig) {
		b.Helper()
		apply(b, inKernel(b), w.restarted().rules)
		var total int64
		for b.Loop() {
			b.StopTimer()
			k, r := another(b), w.restarted().rules
			runtime.GC()
			b.StartTimer()
			start := cpu(b)
			if got := apply(b, k, r); got.Written != 0 {
				b.Fatal(got.Written)
			}
			total += cpu(b) - start
		}
		b.ReportMetric(float64(total)/float64(b.N)/1e6, "cpu-ms")
	})
}

// BenchmarkRebuild makes all of it anew in one transaction.
func BenchmarkRebuild(b *testing.B) {
	eachSize(b, func(b *testing.B, w *rig) {
		b.Helper()
		k, r := inKernel(b), w.restarted().rules
		apply(b, k, r)
		var total int64
		for b.Loop() {
			r.dirty.table = true
			start := cpu(b)
			apply(b, k, r)
			total += cpu(b) - start
		}
		b.ReportMetric(float64(total)/float64(b.N)/1e6, "cpu-ms")
	})
}

// BenchmarkChange writes one change, from the Delta on.
func BenchmarkChange(b *testing.B) {
	eachSize(b, func(b *testing.B, w *rig) {
		b.Helper()
		k := inKernel(b)
		w = w.restarted()
		apply(b, k, w.rules)
		last := len(w.rules.ports) - 1
		n := 2
		if last < 20_000 {
			n = 10
		}
		other := bigEndpoints(last, n)
		other[1] = netip.MustParseAddr("10.200.0.1")
		for _, c := range []struct {
			name    string
			to, fro model.Delta
		}{
			{"endpoint", serviceWith(last, other, nil), serviceWith(last, bigEndpoints(last, n), nil)},
			{"scale", serviceWith(last, bigEndpoints(last, n+1), nil), serviceWith(last, bigEndpoints(last, n), nil)},
			{"service", serviceWith(60_000, bigEndpoints(60_000, n), nil), gone(60_000)},
		} {
			c.to.Services, c.fro.Services = onlyNew(c.name, c.to), onlyNew(c.name, c.fro)
			b.Run(c.name, func(b *testing.B) {
				var total int64
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					d := c.to
					if i%2 == 1 {
						d = c.fro
					}
					changes := w.planner.Update(d)
					b.StartTimer()
					start := cpu(b)
					w.rules.Update(w.planner.Plan(), changes)
					apply(b, k, w.rules)
					total += cpu(b) - start
				}
				b.ReportMetric(float64(total)/float64(b.N)/1e6, "cpu-ms")
				b.ReportAllocs()
			})
		}
	})
}

// onlyNew leaves the Service out where it is the same before and after.
func onlyNew(change string, d model.Delta) map[model.Name]*model.Service {
	if change == "service" {
		return d.Services
	}
	return nil
}

// BenchmarkConnections counts; hold is how long an Apply may have to wait for that.
func BenchmarkConnections(b *testing.B) {
	eachSize(b, func(b *testing.B, w *rig) {
		b.Helper()
		k := inKernel(b)
		apply(b, k, w.restarted().rules)
		var hold time.Duration
		for b.Loop() {
			tables, _, err := k.beginCount(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			counts, err := k.sampleCounts(b.Context())
			if err != nil || len(counts) < len(w.rules.ports) {
				b.Fatal(len(counts), err)
			}
			start := time.Now()
			if _, err := k.addUp(b.Context(), counts, tables); err != nil {
				b.Fatal(err)
			}
			hold += time.Since(start)
		}
		b.ReportMetric(float64(hold.Nanoseconds())/float64(b.N)/1e6, "hold-ms")
	})
}

// BenchmarkNothing is an Apply with nothing to do.
func BenchmarkNothing(b *testing.B) {
	k, w := inKernel(b), newRig(b, service(1, 5))
	apply(b, k, w.rules)
	watch(b, k)
	apply(b, k, w.rules)
	b.ReportAllocs()
	for b.Loop() {
		apply(b, k, w.rules)
	}
}

// BenchmarkStrangers tells what it costs to hear that another program added an element to a table of its own. To receive
// the message costs more; see package nfnl.
func BenchmarkStrangers(b *testing.B) {
	batch := wire.NewBatch("other")
	head := batch.Len()
	batch.AddElement(&sets[setClusterIPs], &nft.Element{Key: nft.Value{}.Addr(clusterIP(1))})
	const netlinkHeader = 16
	data := batch.Finish()[head+netlinkHeader:]
	var d drift
	b.ReportAllocs()
	for b.Loop() {
		if d.hear(wire.NewElement, data) {
			b.Fatal("it is taken for ours")
		}
	}
}
