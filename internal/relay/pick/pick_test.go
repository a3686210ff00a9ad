package pick

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// world is a Picker with a clock and randomness of its own.
type world struct {
	*Picker
	now time.Time
}

func newWorld(c Config, list ...plan.Endpoint) *world {
	w := &world{now: time.Unix(1_000_000, 0)}
	c.Now = func() time.Time { return w.now }
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(1, 2)).IntN
	}
	w.Picker = New(c)
	w.Set(list, c.Balancing, c.Affinity)
	return w
}

func (w *world) pick(t rapid.TB, client netip.Addr, tried ...netip.AddrPort) netip.AddrPort {
	t.Helper()
	addr, ok := w.Pick(client, tried)
	if !ok {
		t.Fatalf("nothing was chosen for %s besides %v", client, tried)
	}
	return addr
}

func (w *world) picks(t rapid.TB, n int) (out []netip.AddrPort) {
	t.Helper()
	for range n {
		out = append(out, w.pick(t, anyone))
	}
	return out
}

var anyone = netip.MustParseAddr("192.0.2.1")

func at(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 80)
}

func endpoints(weights ...uint16) (list []plan.Endpoint) {
	for i, w := range weights {
		list = append(list, plan.Endpoint{AddrPort: at(i), Weight: w})
	}
	return list
}

func equal(n int) []plan.Endpoint { return endpoints(slices.Repeat([]uint16{1}, n)...) }

func addresses(list []plan.Endpoint) (out []netip.AddrPort) {
	for _, e := range list {
		out = append(out, e.AddrPort)
	}
	return out
}

func TestTurnsAreThoseOfSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := endpoints(rapid.SliceOfN(rapid.Uint16Range(1, 9), 1, 12).Draw(t, "weights")...)
		want := addresses(plan.Spread(list))
		w := newWorld(Config{}, list...)
		for range 3 {
			if got := w.picks(t, len(want)); !slices.Equal(got, want) {
				t.Fatalf("turns\n%v, want\n%v", got, want)
			}
		}
	})
}

// One endpoint fails before it has a turn: the others have the turns that they would have without it.
func TestTurnsOfOthersWhileOneIsMarked(t *testing.T) {
	list := endpoints(3, 1, 2)
	w := newWorld(Config{}, list...)
	w.Failed(at(1))
	want := addresses(plan.Spread([]plan.Endpoint{list[0], list[2]}))
	if got := w.picks(t, len(want)); !slices.Equal(got, want) {
		t.Errorf("turns %v, want %v", got, want)
	}
}

// Each number that Rand may draw leads to an endpoint, and as many to one as its weight says.
func TestRandomSharesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := endpoints(rapid.SliceOfN(rapid.Uint16Range(1, 20), 1, 40).Draw(t, "weights")...)
		drawn := 0
		w := newWorld(Config{Balancing: model.BalanceRandom, Rand: func(int) int { return drawn }}, list...)
		marked := map[netip.AddrPort]bool{}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(list)-1), 0, len(list)-1).Draw(t, "failed") {
			w.Failed(at(i))
			marked[at(i)] = true
		}
		if len(marked) < len(list) && rapid.Bool().Draw(t, "mended") {
			for addr := range marked {
				w.Worked(addr)
			}
			clear(marked)
		}
		want, total := map[netip.AddrPort]int{}, 0
		for _, e := range list {
			if !marked[e.AddrPort] {
				want[e.AddrPort] = int(e.Weight)
				total += int(e.Weight)
			}
		}
		got := map[netip.AddrPort]int{}
		for drawn = range total {
			got[w.pick(t, anyone)]++
		}
		for addr, n := range want {
			if got[addr] != n {
				t.Fatalf("%s is chosen by %d numbers of %d, want %d", addr, got[addr], total, n)
			}
		}
	})
}

func TestLeastConnectionsForTheWeight(t *testing.T) {
	w := newWorld(Config{Balancing: model.BalanceLeastConnections}, endpoints(1, 2, 5)...)
	got := map[netip.AddrPort]int{}
	for range 80 {
		addr := w.pick(t, anyone)
		w.Begin(addr)
		got[addr]++
	}
	for i, want := range []int{10, 20, 50} {
		if got[at(i)] != want {
			t.Errorf("endpoint of weight %d has %d of 80 connections, want %d", []int{1, 2, 5}[i], got[at(i)], want)
		}
	}
	for range 40 {
		w.End(at(2))
	}
	for range 15 {
		addr := w.pick(t, anyone)
		if addr != at(2) {
			t.Fatalf("chosen %s, want %s, which has 10 connections for a weight of 5", addr, at(2))
		}
		w.Begin(addr)
	}
}

func TestLeastConnectionsTakesTurnsAmongEquals(t *testing.T) {
	w := newWorld(Config{Balancing: model.BalanceLeastConnections}, equal(3)...)
	want := []netip.AddrPort{at(0), at(1), at(2), at(0), at(1), at(2)}
	if got := w.picks(t, 6); !slices.Equal(got, want) {
		t.Errorf("chosen %v, want %v", got, want)
	}
}

func TestTriedEndpointsArePassedOver(t *testing.T) {
	for _, b := range balancings() {
		w := newWorld(Config{Balancing: b, Affinity: time.Hour}, endpoints(9, 1, 1)...)
		var tried []netip.AddrPort
		for range 3 {
			addr := w.pick(t, anyone, tried...)
			if slices.Contains(tried, addr) {
				t.Errorf("%v: chosen %s again, tried %v", b, addr, tried)
			}
			tried = append(tried, addr)
		}
		if addr, ok := w.Pick(anyone, tried); ok {
			t.Errorf("%v: chosen %s when all were tried", b, addr)
		}
	}
}

func balancings() []model.Balancing {
	return []model.Balancing{
		model.BalanceDefault, model.BalanceRandom, model.BalanceRoundRobin, model.BalanceLeastConnections,
	}
}

func TestNobodyIsChosenOfNone(t *testing.T) {
	for _, b := range balancings() {
		w := newWorld(Config{Balancing: b})
		if addr, ok := w.Pick(anyone, nil); ok {
			t.Errorf("%v: chosen %s of an empty list", b, addr)
		}
		w.Begin(at(1))
		w.Failed(at(1))
		if addr, ok := w.Pick(anyone, nil); ok {
			t.Errorf("%v: chosen %s of an empty list, after a connection to it", b, addr)
		}
	}
}

// Few that stay of many take turns at once, wherever the turns of the many stood.
func TestTurnsOfFewLeftOfMany(t *testing.T) {
	w := newWorld(Config{}, equal(1000)...)
	w.picks(t, 500)
	stay := append(equal(1000)[495:500:500], equal(1000)[500:505]...)
	w.Set(stay, model.BalanceDefault, 0)
	got := map[netip.AddrPort]int{}
	for _, addr := range w.picks(t, 100) {
		got[addr]++
	}
	for _, e := range stay {
		if n := got[e.AddrPort]; n < 9 || n > 11 {
			t.Errorf("%s has %d turns of 100, want about 10", e.AddrPort, n)
		}
	}
}

// The same, when the others do not leave and are marked; and the marked have no more than their share afterwards.
func TestTurnsOfFewUnmarked(t *testing.T) {
	w := newWorld(Config{}, equal(1000)...)
	w.picks(t, 500)
	for i := range 1000 {
		if i < 495 || i >= 505 {
			w.Failed(at(i))
		}
	}
	got := map[netip.AddrPort]int{}
	for _, addr := range w.picks(t, 100) {
		got[addr]++
	}
	for i := 495; i < 505; i++ {
		if n := got[at(i)]; n < 8 || n > 12 {
			t.Errorf("%s has %d turns of 100, want about 10", at(i), n)
		}
	}
	w.now = w.now.Add(lastMark)
	clear(got)
	for _, addr := range w.picks(t, 3000) {
		got[addr]++
	}
	for i := range 1000 {
		if n := got[at(i)]; n < 1 || n > 5 {
			t.Errorf("%s has %d turns of 3000 when all are back, want about 3", at(i), n)
		}
	}
}

// What stays in the list stays in its place: a change elsewhere does not begin the turns anew.
func TestSetKeepsTurns(t *testing.T) {
	w := newWorld(Config{}, equal(4)...)
	w.picks(t, 2)
	w.Set(equal(5), model.BalanceDefault, 0)
	got := w.picks(t, 3)
	slices.SortFunc(got, netip.AddrPort.Compare)
	if want := []netip.AddrPort{at(2), at(3), at(4)}; !slices.Equal(got, want) {
		t.Errorf("the next turns are those of %v, want %v, which had none yet", got, want)
	}
}

func TestSetKeepsOpenConnections(t *testing.T) {
	w := newWorld(Config{Balancing: model.BalanceLeastConnections}, equal(2)...)
	w.Begin(at(0))
	w.Set(equal(2)[1:], model.BalanceLeastConnections, 0)
	w.Set(equal(2), model.BalanceLeastConnections, 0)
	for range 3 {
		if addr := w.pick(t, anyone); addr != at(1) {
			t.Errorf("chosen %s, which has a connection since before it left and came back", addr)
		}
	}
	w.End(at(0))
	if addr := w.pick(t, anyone); addr != at(0) {
		t.Errorf("chosen %s, want %s: its turn was longest ago", addr, at(0))
	}
}

// The end of the last connection of an endpoint that is gone leaves nothing behind.
func TestGoneEndpointsAreForgotten(t *testing.T) {
	w := newWorld(Config{}, equal(2)...)
	w.Begin(at(0))
	w.Set(nil, model.BalanceDefault, 0)
	w.Begin(at(7))
	if n := len(w.endpoints); n != 2 {
		t.Errorf("%d endpoints are known, want the 2 with connections", n)
	}
	w.End(at(0))
	w.End(at(7))
	w.End(at(7))
	if n := len(w.endpoints); n != 0 {
		t.Errorf("%d endpoints are known, want none", n)
	}
}

func TestOfDuplicatesTheFirstCounts(t *testing.T) {
	list := append(endpoints(3, 1), endpoints(1)...)
	w := newWorld(Config{}, list...)
	want := addresses(plan.Spread(list[:2]))
	if got := w.picks(t, len(want)); !slices.Equal(got, want) {
		t.Errorf("turns %v, want %v", got, want)
	}
}

func BenchmarkPick(b *testing.B) {
	names := []string{"default", "random", "round robin", "least connections"}
	for i, balancing := range balancings() {
		for _, n := range []int{10, 1000, 100_000} {
			if balancing == model.BalanceDefault {
				continue // round robin
			}
			weights := make([]uint16, n)
			for i := range weights {
				weights[i] = uint16(1 + i%3)
			}
			b.Run(fmt.Sprintf("%s/%d", names[i], n), func(b *testing.B) {
				w := newWorld(Config{Balancing: balancing}, endpoints(weights...)...)
				for b.Loop() {
					addr, _ := w.Pick(anyone, nil)
					w.Begin(addr)
					w.End(addr)
				}
			})
		}
	}
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list := equal(n)
			w := newWorld(Config{}, list...)
			for b.Loop() {
				w.Set(list, model.BalanceDefault, 0)
			}
		})
	}
}
