package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// trial is one attempt along a way, which finds figures for some rows.
type trial struct {
	rows []string
	run  func(w *way) ([]float64, error)
}

// The rows. Those of the proxy are for the one way that has one.
var trials = []trial{
	{[]string{"bytes over one TCP connection, GB/s", "CPU s for each GB, in all", "CPU s for each GB, proxy"}, bulk},
	{[]string{"TCP connections/s, one client", "CPU µs for each, proxy"}, connections(1)},
	{[]string{"TCP connections/s, 32 clients", "CPU µs for each of 32 clients', proxy"}, connections(32)},
	{[]string{"request and answer over an open TCP connection: p50 µs", "the same, p99 µs"}, roundTrips},
	{[]string{"UDP datagrams/s, 32 on their way", "CPU µs for each datagram, proxy"}, datagrams},
	{[]string{"UDP request and answer: p50 µs", "the same of UDP, p99 µs"}, datagramTrips},
}

// BenchmarkUserspace compares the ways from a client to an endpoint.
func BenchmarkUserspace(b *testing.B) {
	nstest.Require(b)
	for b.Loop() {
		var ways []*way
		for _, mode := range modesBeside() {
			w := newWay(b, mode, "")
			w.listen()
			ways = append(ways, w)
		}
		compare(ways, scaled(15))
		t := figures.Grid{Head: []string{"", "direct", "nftables", "÷ direct", "userspace", "÷ direct"}}
		for _, tr := range trials {
			for _, row := range tr.rows {
				t.Add(cells(row, ways)...)
			}
		}
		for _, w := range ways {
			w.end()
		}
		publish(b, "userspace", figures.Machine(b)+".\n\n"+t.String())
	}
}

// scaled is a number of rounds, bytes and the like: in a short run few.
func scaled(n int) int {
	if testing.Short() {
		return max(2, n/8)
	}
	return n
}

// compare makes all trials of all ways in each round, in another order each time, so that what disturbs the machine
// disturbs all of them alike.
func compare(ways []*way, rounds int) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range rounds {
		for _, tr := range trials {
			for _, i := range rnd.Perm(len(ways)) {
				ways[i].try(tr)
			}
		}
	}
}

func (w *way) try(tr trial) {
	w.Helper()
	values, err := tr.run(w)
	if err != nil {
		w.Fatalf("%s, %s: %v", w.name, tr.rows[0], err)
	}
	for i, v := range values {
		w.found[tr.rows[i]] = append(w.found[tr.rows[i]], v)
	}
}

// cells are the medians of a row.
func cells(row string, ways []*way) []string {
	direct := mid(ways[0].found[row])
	out := []string{row}
	for i, w := range ways {
		if v := mid(w.found[row]); v > 0 {
			out = append(out, number(v))
		} else {
			out = append(out, "")
		}
		if i == 0 {
			continue
		}
		out = append(out, ratio(time.Duration(mid(w.found[row])*1e6), time.Duration(direct*1e6)))
	}
	return out
}

// mid is 0 where there is nothing.
func mid(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// number has three digits that count.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// proxyTime is the CPU time of the proxy so far; 0 where there is none.
func (w *way) proxyTime() time.Duration {
	w.Helper()
	if w.daemon == nil {
		return 0
	}
	return w.daemon.cpu()
}

// timed returns how long f takes, and the CPU time of this process and of the daemon during it.
func (w *way) timed(f func() error) (elapsed, here, proxy time.Duration, err error) {
	w.Helper()
	cpu, there, begin := used(w.B), w.proxyTime(), time.Now()
	err = f()
	return time.Since(begin), used(w.B) - cpu, w.proxyTime() - there, err
}
