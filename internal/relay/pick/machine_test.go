package pick

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// machine compares a Picker with what is said of it, whatever happens in whatever order.
type machine struct {
	w        *world
	affinity time.Duration
	listed   map[netip.AddrPort]bool
	marked   map[netip.AddrPort]time.Time // until when
	failures map[netip.AddrPort]int
	had      map[netip.Addr]netip.AddrPort // each client's last endpoint
	seen     map[netip.Addr]time.Time
	open     []netip.AddrPort
}

func (m *machine) set(t *rapid.T) {
	var list []plan.Endpoint
	next := map[netip.AddrPort]bool{}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 0, 8, rapid.ID).Draw(t, "endpoints") {
		list = append(list, plan.Endpoint{AddrPort: at(i), Weight: rapid.Uint16Range(1, 3).Draw(t, "weight")})
		next[at(i)] = true
	}
	for addr := range m.listed {
		if !next[addr] {
			delete(m.marked, addr)
			delete(m.failures, addr)
		}
	}
	m.listed = next
	m.affinity = rapid.SampledFrom([]time.Duration{0, 10 * time.Second}).Draw(t, "affinity")
	if m.affinity == 0 {
		clear(m.had)
	}
	m.w.Set(list, rapid.SampledFrom(balancings()).Draw(t, "balancing"), m.affinity)
}

func (m *machine) pick(t *rapid.T) {
	who := clientAt(rapid.IntRange(1, 4).Draw(t, "client"))
	var tried []netip.AddrPort
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, 7), 0, 4).Draw(t, "tried") {
		tried = append(tried, at(i))
	}
	var good, bad []netip.AddrPort
	for addr := range m.listed {
		switch {
		case slices.Contains(tried, addr):
		case m.marked[addr].After(m.w.now):
			bad = append(bad, addr)
		default:
			good = append(good, addr)
		}
	}
	got, ok := m.w.Pick(who, tried)
	m.judge(t, who, got, ok, good, bad)
}

func (m *machine) judge(t *rapid.T, who netip.Addr, got netip.AddrPort, ok bool, good, bad []netip.AddrPort) {
	last, had := m.had[who]
	sticks := had && m.w.now.Sub(m.seen[who]) < m.affinity && slices.Contains(good, last)
	switch {
	case ok != (len(good)+len(bad) > 0):
		t.Fatalf("chosen: %v, though there are %v, and marked %v", ok, good, bad)
	case !ok:
		return
	case sticks && got != last:
		t.Fatalf("chosen %s for a client of %s", got, last)
	case len(good) > 0 && !slices.Contains(good, got):
		t.Fatalf("chosen %s, want one of %v", got, good)
	case len(good) == 0 && !slices.Contains(bad, got):
		t.Fatalf("chosen %s, want one of the marked %v", got, bad)
	}
	if m.affinity > 0 {
		m.had[who], m.seen[who] = got, m.w.now
	}
}

func (m *machine) fail(t *rapid.T) {
	addr := at(rapid.IntRange(0, 7).Draw(t, "failed"))
	m.w.Failed(addr)
	if m.listed[addr] && !m.marked[addr].After(m.w.now) {
		m.marked[addr] = m.w.now.Add(min(time.Second<<m.failures[addr], 30*time.Second))
		m.failures[addr]++
	}
}

func (m *machine) work(t *rapid.T) {
	addr := at(rapid.IntRange(0, 7).Draw(t, "worked"))
	m.w.Worked(addr)
	delete(m.marked, addr)
	delete(m.failures, addr)
}

func (m *machine) begin(t *rapid.T) {
	addr := at(rapid.IntRange(0, 7).Draw(t, "begun"))
	m.w.Begin(addr)
	m.open = append(m.open, addr)
}

func (m *machine) end(t *rapid.T) {
	if len(m.open) > 0 {
		i := rapid.IntRange(0, len(m.open)-1).Draw(t, "ended")
		m.w.End(m.open[i])
		m.open = slices.Delete(m.open, i, i+1)
	}
}

func (m *machine) wait(t *rapid.T) {
	m.w.now = m.w.now.Add(time.Duration(rapid.IntRange(1, 12_000).Draw(t, "ms")) * time.Millisecond)
	m.w.Pick(anyone, nil) // marks end when somebody asks
}

// check compares the counts of connections.
func (m *machine) check(t *rapid.T) {
	want := map[netip.AddrPort]int{}
	for _, addr := range m.open {
		want[addr]++
	}
	got := map[netip.AddrPort]int{}
	for addr, e := range m.w.endpoints {
		if e.open > 0 {
			got[addr] = e.open
		}
		if e.open == 0 && !m.listed[addr] {
			t.Fatalf("%s is neither listed nor has it connections, and is known", addr)
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("open connections %v, want %v", got, want)
	}
}

func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			w: newWorld(Config{}), listed: map[netip.AddrPort]bool{}, marked: map[netip.AddrPort]time.Time{},
			failures: map[netip.AddrPort]int{}, had: map[netip.Addr]netip.AddrPort{}, seen: map[netip.Addr]time.Time{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": m.set, "pick": m.pick, "pick again": m.pick, "fail": m.fail, "work": m.work,
			"begin": m.begin, "end": m.end, "wait": m.wait, "": m.check,
		})
	})
}

// The race detector is what judges here.
func TestConcurrentUse(t *testing.T) {
	for _, b := range balancings() {
		p := New(Config{Balancing: b, Affinity: time.Second, Now: time.Now, Rand: func(n int) int { return n / 2 }})
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				for i := range 200 {
					if addr, ok := p.Pick(clientAt(i%8), nil); ok {
						p.Begin(addr)
						p.Failed(at(i % 5))
						p.Worked(addr)
						p.End(addr)
					}
					p.Set(equal(1+(i+g)%8), model.BalanceDefault, time.Second)
				}
			})
		}
		all.Wait()
		for addr, e := range p.endpoints {
			if e.open != 0 {
				t.Errorf("%v: %s has %d connections, want none", b, addr, e.open)
			}
		}
	}
}
