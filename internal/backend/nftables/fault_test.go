package nftables

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// faulty is a Socket whose next commits fail, or seem to.
type faulty struct {
	Socket
	// before is asked before each commit: its error is the commit's, which is not made then.
	before func() error
	// after is the error of a commit that was made.
	after func() error
	// dump is asked before each message of a dump but the first: its error is the dump's.
	dump    func() error
	commits int
	limit   int // 0: the socket's own
}

func (f *faulty) Commit(ctx context.Context, batch []byte) error {
	f.commits++
	if f.before != nil {
		if err := f.before(); err != nil {
			return err
		}
	}
	if f.limit > 0 && len(batch) > f.limit {
		return nfnl.ErrTooLarge
	}
	err := f.Socket.Commit(ctx, batch)
	if err == nil && f.after != nil {
		err = f.after()
	}
	return err
}

func (f *faulty) Dump(ctx context.Context, kind uint16, request []byte, each func(uint16, []byte) error) error {
	if f.dump == nil {
		return f.Socket.Dump(ctx, kind, request, each)
	}
	first := true
	return f.Socket.Dump(ctx, kind, request, func(kind uint16, data []byte) error {
		if !first {
			if err := f.dump(); err != nil {
				return err
			}
		}
		first = false
		return each(kind, data)
	})
}

func (f *faulty) Limit() int {
	if f.limit > 0 {
		return f.limit
	}
	return f.Socket.Limit()
}

// withFaults is inKernel with a socket that fails as it is told.
func withFaults(t testing.TB) (*Backend, *faulty) {
	t.Helper()
	b := inKernel(t)
	socket, err := openSocket()
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Socket: socket}
	b.deps.Open = func() (Socket, error) { return f, nil }
	t.Cleanup(func() { f.before, f.after, f.dump, f.limit = nil, nil, nil, 0 })
	return b, f
}

// once fails the first time.
func once(err error) func() error {
	return func() (now error) {
		now, err = err, nil
		return now
	}
}

// small has a set take so few elements that the kernel refuses what comes beyond, since it does not grow.
func small(t *testing.T, r *Ruleset, set setID, size uint32) {
	t.Helper()
	least := minSizes[set]
	minSizes[set], r.sizes.size[set] = 0, size
	t.Cleanup(func() { minSizes[set] = least })
}

func TestRefusedPortHoldsUpNobody(t *testing.T) {
	b := inKernel(t)
	w := newRig(t, service(1, 5, 6), service(2, 5))
	small(t, w.rules, setEndpoints, 6)
	apply(t, b, w.rules)
	for _, d := range []model.Delta{service(2, 5, 6, 7, 8, 9, 10), service(3, 7), service(1, 5), service(4)} {
		w.change(d)
	}
	got := apply(t, b, w.rules)
	if ids := slices.Collect(maps.Keys(got.Refused)); len(ids) != 1 || ids[0] != portID(2) || !errors.Is(got.Refused[ids[0]], syscall.ENFILE) {
		t.Fatalf("refused are %v, want Service 2 because of ENFILE", got.Refused)
	}
	t.Log(got.Refused[portID(2)])
	had := b.known.ports[portID(2)]
	if had == nil || had.lists[0].slotCount() != 1 || b.known.ports[portID(3)] != w.rules.ports[portID(3)] || b.known.ports[portID(1)] != w.rules.ports[portID(1)] {
		t.Error("Service 2 is not as it was, or another is not as it is wanted")
	}
	same(t, b)

	held := backend.Request{Hold: map[plan.PortID]bool{portID(2): true}}
	w.change(service(5, 8))
	if got := applyReq(t, b, w.rules, held); len(got.Refused) != 0 || got.Written == 0 || b.known.ports[portID(2)] != had {
		t.Errorf("on hold: %+v", got)
	}
	same(t, b)
	if got := apply(t, b, w.rules); len(got.Refused) != 1 {
		t.Errorf("tried again: %+v", got)
	}
	w.change(service(2, 7))
	if got := apply(t, b, w.rules); len(got.Refused) != 0 {
		t.Errorf("a port that can be taken: %+v", got)
	}
	same(t, b)
}

// same has the kernel be as it is known to be.
func same(t *testing.T, b *Backend) {
	t.Helper()
	a := &run{Backend: b, result: &backend.Result{}}
	if names, err := a.recheck(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("the kernel is not as it is known to be: %v, error %v", names, err)
	}
}

func TestRefusedAtTheStart(t *testing.T) {
	b := inKernel(t)
	var all []model.Delta
	for i := range 50 {
		all = append(all, service(i, 5, 6))
	}
	w := newRig(t, all...)
	w.change(service(17, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
	small(t, w.rules, setEndpoints, 100)
	got := apply(t, b, w.rules)
	if len(got.Refused) == 0 || len(got.Refused) > 6 {
		t.Errorf("refused are %d, want the last few", len(got.Refused))
	}
	if n := len(b.known.ports); n != 50-len(got.Refused) {
		t.Errorf("%d ports are written, and %d refused", n, len(got.Refused))
	}
	same(t, b)
}

func TestRefusalAmongManyOverWhatIsThere(t *testing.T) {
	b := inKernel(t)
	w := newRig(t, service(1, 5))
	small(t, w.rules, setEndpoints, 100)
	apply(t, b, w.rules)
	for i := range 90 {
		w.change(service(i, byte(i), byte(i+1)))
	}
	got := apply(t, b, w.rules)
	if n := len(got.Refused); n != 90-50 {
		t.Errorf("%d refused, want those that have no room: 40", n)
	}
	same(t, b)
}

// What is unclear is looked at: whether a commit was taken or not.
func TestUnanswered(t *testing.T) {
	for name, fault := range map[string]func(*faulty){
		"taken":     func(f *faulty) { f.after = once(nfnl.ErrUnanswered) },
		"not taken": func(f *faulty) { f.before = once(nfnl.ErrUnanswered) },
	} {
		t.Run(name, func(t *testing.T) {
			b, f := withFaults(t)
			w := newRig(t, service(1, 5, 6))
			fault(f)
			apply(t, b, w.rules)
			restarts(t, w)
			for _, d := range []model.Delta{service(1, 5), service(2, 7, 8), gone(1)} {
				fault(f)
				w.change(d)
				if got := apply(t, b, w.rules); len(got.Restored) != 0 {
					t.Errorf("%v are called restored", got.Restored)
				}
				restarts(t, w)
			}
		})
	}
}

// Where others change something all the time, so that nothing can be read at once, the table is made anew.
func TestNothingCanBeRead(t *testing.T) {
	b, f := withFaults(t)
	w := newRig(t, service(1, 5, 6), service(2, 5))
	apply(t, another(t), w.restarted().rules)
	interrupted := func() error { return nfnl.ErrInterrupted }
	f.dump = interrupted
	apply(t, b, w.rules)
	restarts(t, w)
	nftFile(t, "delete table inet sluice")
	if got := apply(t, b, w.rules); len(got.Restored) != 1 {
		t.Errorf("restored %v, want the table", got.Restored)
	}
	f.dump = nil
	restarts(t, w)
}

// What others did is told also if it could not be read at first.
func TestDriftThatCannotBeReadAtOnce(t *testing.T) {
	b, f := withFaults(t)
	w := newRig(t, service(1, 5, 6))
	apply(t, b, w.rules)
	nftFile(t, "delete element inet sluice services4 { 10.96.0.1 . tcp . 80 }")
	left := tries
	f.dump = func() error {
		if left--; left >= 0 {
			return nfnl.ErrInterrupted
		}
		return nil
	}
	want := []string{"element 10.96.0.1 . tcp . 80 of services4 (default/service-1:http)"}
	if got := apply(t, b, w.rules); !slices.Equal(got.Restored, want) {
		t.Errorf("restored %v, want %v", got.Restored, want)
	}
	if left >= 0 {
		t.Errorf("%d dumps were not interrupted", left+1)
	}
	restarts(t, w)
}

// A process that ends between the two transactions of a change leaves what the next one puts right.
func TestKilledBetweenTransactions(t *testing.T) {
	b, f := withFaults(t)
	w := newRig(t, service(1, 5, 6, 7), service(2, 5))
	apply(t, b, w.rules)
	w.change(service(1, 5))
	killed, n := errors.New("killed"), 0
	f.before = func() error {
		if n++; n > 1 {
			return killed
		}
		return nil
	}
	if _, err := b.Apply(t.Context(), w.rules, backend.Request{}); !errors.Is(err, killed) {
		t.Fatalf("error is %v", err)
	}
	got := apply(t, another(t), w.restarted().rules)
	if got.Written != 2 {
		t.Errorf("%d objects written, want the two slots beyond the end", got.Written)
	}
	restarts(t, w)
}

// An Apply that fails loses nothing.
func TestFailedApplyIsTriedAgain(t *testing.T) {
	b, f := withFaults(t)
	w := newRig(t, service(1, 5, 6, 7))
	broken := errors.New("broken")
	fails := func() {
		t.Helper()
		f.before = func() error { return broken }
		if _, err := b.Apply(t.Context(), w.rules, backend.Request{}); !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
		f.before = nil
	}
	fails()
	apply(t, b, w.rules)
	restarts(t, w)
	w.change(service(1, 8))
	w.change(service(2, 8))
	fails()
	w.change(gone(1))
	fails()
	apply(t, b, w.rules)
	restarts(t, w)
}

// The buffer of an ordinary user is too small for all at once.
func TestSmallBuffer(t *testing.T) {
	b, f := withFaults(t)
	var all []model.Delta
	for i := range 200 {
		all = append(all, service(i, 5, 6, 7))
	}
	w := newRig(t, all...)
	f.limit = 60_000
	apply(t, b, w.rules)
	restarts(t, w)
	if f.commits < 2 {
		t.Errorf("%d transactions, want several", f.commits)
	}
	nftFile(t, "flush chain inet sluice balance")
	if got := apply(t, b, w.rules); len(got.Restored) != 1 {
		t.Errorf("restored %v", got.Restored)
	}
	restarts(t, w)
	for i := range 200 {
		w.change(service(i, 8, 9, 10, 11))
	}
	if got := apply(t, b, w.rules); len(got.Refused) != 0 {
		t.Errorf("refused %v", got.Refused)
	}
	restarts(t, w)
	var many []netip.Addr
	for i := range 1000 {
		many = append(many, netip.AddrFrom4([4]byte{10, 244, byte(2 + i>>8), byte(i)}))
	}
	w.change(serviceWith(7, many, nil)) // by itself more than the socket takes
	if got := apply(t, b, w.rules); len(got.Refused) != 0 {
		t.Errorf("refused %v", got.Refused)
	}
	restarts(t, w)
}

// What others do while a table is filled, and nobody listens, is found by the same Apply.
func TestDriftDuringLoad(t *testing.T) {
	b, f := withFaults(t)
	watch(t, b)
	var all []model.Delta
	for i := range 400 {
		all = append(all, service(i, 5, 6, 7))
	}
	w := newRig(t, all...)
	f.limit = 60_000
	n := 0
	f.before = func() error {
		if n++; n == 2 {
			nftFile(t, "add element inet sluice node-ports4 { tcp . 1 : 0:0 }; delete chain inet sluice nat-output")
		}
		return nil
	}
	got := apply(t, b, w.rules)
	if len(got.Restored) == 0 {
		t.Error("nothing is restored")
	}
	f.before = nil
	restarts(t, w)
}

// A port is not to blame for what others take away while it is written.
func TestFlushBeforeAnyCommit(t *testing.T) {
	b, f := withFaults(t)
	w := newRig(t, service(1, 5), service(2, 5, 6))
	apply(t, b, w.rules)
	for first := range 6 {
		w.change(service(1, 5, 6, byte(10+first)))
		w.change(service(2, byte(10+first)))
		nftFile(t, "flush map inet sluice services4")
		n := 0
		f.before = func() error {
			if n++; n > first && n <= first+2 {
				nftFile(t, "flush ruleset")
			}
			return nil
		}
		if got := apply(t, b, w.rules); len(got.Refused) != 0 {
			t.Errorf("flushed before the commits from %d on: %+v", first+1, got)
		}
		f.before = nil
		apply(t, b, w.rules)
		restarts(t, w)
	}
}

// flushing is a Listener of which somebody knows when it listens again.
type flushing struct {
	Listener
	before func() // each Resume
}

func (l *flushing) Resume() error {
	l.before()
	return l.Listener.Resume()
}

// If others are at it in each load of an Apply, that ends, and asks for another one.
func TestDriftDuringEveryLoad(t *testing.T) {
	b := inKernel(t)
	flushes := 0
	b.deps.Listen = func(ours uint32) (Listener, error) {
		l, err := listen(ours)
		return &flushing{Listener: l, before: func() {
			if flushes > 0 {
				flushes--
				nftFile(t, "flush ruleset")
			}
		}}, err
	}
	w := newRig(t, service(1, 5, 6, 7))
	watched := watch(t, b)
	for range 3 {
		flushes = 2
		apply(t, b, w.rules)
		watched.wait(t)
	}
	apply(t, b, w.rules)
	restarts(t, w)
}

// To replace the table keeps clients at their endpoints, and the counts.
func TestRebuildKeepsWhatClientsLeft(t *testing.T) {
	l := upLab(t)
	sticky := func(s *model.Service) { s.Affinity = time.Hour }
	w := newRig(t, serviceWith(1, addrsOf("10.244.1.5", "10.244.1.6", "10.244.1.7", "10.244.1.8"), sticky), service(2, 5))
	b := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), b, w)
	clients := map[byte]netip.AddrPort{}
	for client := range byte(20) {
		clients[client] = endpointOf(t, l, 1, client)
	}
	rebuilt := func(b *Backend, w *rig) {
		t.Helper()
		w.rules.dirty.table = true
		applyAt(t, l.Node(), b, w)
		for client, had := range clients {
			if got := endpointOf(t, l, 1, client); got != had {
				t.Errorf("client %d was at %s, and is at %s", client, had, got)
			}
		}
	}
	rebuilt(b, w)
	for _, expires := range expiries(t, l, b) {
		if expires > time.Hour || expires < 50*time.Minute {
			t.Errorf("an entry goes on for %v", expires)
		}
	}
	if got := connections(t, l, b, 1); got != 40 {
		t.Errorf("%d connections counted, want 40", got)
	}
	next := w.restarted() // a new process takes the numbers over
	other := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), other, next)
	rebuilt(other, next)
	if got := connections(t, l, other, 1); got != 60 {
		t.Errorf("%d connections counted, want 60", got)
	}
}

// endpointOf is where a client's connection to Service number i arrives.
func endpointOf(t *testing.T, l *lab.Lab, i int, client byte) netip.AddrPort {
	t.Helper()
	o, err := l.Host("pods-a").Dial(lab.Dial{
		From: netip.AddrFrom4([4]byte{10, 244, 1, 50 + client}), To: netip.AddrPortFrom(clusterIP(i), 80), Protocol: model.TCP,
	})
	if err != nil || o.Action != plan.Forward {
		t.Fatalf("%v, error %v", o, err)
	}
	return o.Endpoint
}

// expiries are what is left of the lives of all entries of session affinity.
func expiries(t *testing.T, l *lab.Lab, b *Backend) (all []time.Duration) {
	t.Helper()
	err := l.Node().Do(func() error {
		entries, err := b.readSet(t.Context(), setAffinity)
		if err != nil {
			return err
		}
		for e := range entries.elements {
			all = append(all, e.Expires)
		}
		return entries.err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d entries, error %v", len(all), err)
	}
	return all
}
