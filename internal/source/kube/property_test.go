package kube

import (
	"context"
	"flag"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"sluice/internal/model"
	"sluice/internal/testkit/await"
)

var seedFlag = flag.Uint64("seed", 0, "the seed of the only run of random edits; 0: several new ones")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// values lets cmp compare values of package model.
var values = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

// quick is a pace for tests: it only says how long things wait for one another. The first Change waits for all kinds.
var quick = pace{first: time.Millisecond, most: 4 * time.Millisecond, slow: 4 * time.Millisecond, patience: time.Hour}

// impatient is for who is to be told without the kinds that are not needed, and that do not come.
const impatient = 50 * time.Millisecond

// dialFake is a Client of a server that is not there for long.
func dialFake(t *testing.T, url, contentType string, log *slog.Logger) *Client {
	t.Helper()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	config := &rest.Config{Host: url, QPS: -1}
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	c, err := dial(config, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pace = quick
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// receiver applies what a Client tells.
type receiver struct {
	mu       sync.Mutex // guards all that follows
	snapshot *model.Snapshot
	problems map[Object][]string
	triggers []Trigger
	changes  []Change
}

func (r *receiver) take(c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	r.snapshot.Apply(c.Delta)
	maps.Copy(r.problems, c.Problems)
	maps.DeleteFunc(r.problems, func(_ Object, p []string) bool { return len(p) == 0 })
	r.triggers = append(r.triggers, c.Triggers...)
}

func (r *receiver) diff(s *model.Snapshot) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Diff(s, r.snapshot, values)
}

func (r *receiver) told() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changes)
}

// start watches until the test ends, or until stop, which waits.
func start(t *testing.T, c *Client) (r *receiver, stop func()) {
	t.Helper()
	r = &receiver{snapshot: model.NewSnapshot(), problems: map[Object][]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Watch(ctx, "node-a", r.take); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return r, stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	await.True(t, time.Millisecond, what, is)
}

// troubles is what the fake server counts, and all that is to happen before TestNothingIsLost has shown anything.
var troubles = []string{
	"cut", "end", "break", "refuse", "gone", "gone event", "gone page", "no stream", "stream", "list", "page", "bookmark", "pause",
	"forbidden servicecidrs",
}

// Whatever breaks while objects change, in the end the receiver has what the server has, deletions and problems
// included, as a receiver that begins then has it.
func TestNothingIsLost(t *testing.T) {
	if *seedFlag != 0 {
		t.Logf("what went wrong, or on: %v", storm(t, *seedFlag).seen)
		return
	}
	// What happens is left to chance, and some of it is rare, as a list whose next page is gone.
	seen := map[string]int{}
	for round := 0; round == 0 || round < 20 && unmet(seen) != ""; round++ {
		storms(t, 12, seen)
	}
	t.Logf("what went wrong, or on: %v", seen)
	if what := unmet(seen); what != "" {
		t.Errorf("no run met %q", what)
	}
}

func unmet(seen map[string]int) string {
	for _, what := range troubles {
		if seen[what] == 0 {
			return what
		}
	}
	return ""
}

// storms adds to seen what happened in n random runs.
func storms(t *testing.T, n int, seen map[string]int) {
	for range n {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Logf("repeat with -seed=%d", seed)
			for what, n := range storm(t, seed).seen {
				seen[what] += n
			}
		})
	}
}

func storm(t *testing.T, seed uint64) *fakeServer {
	rng := rand.New(rand.NewPCG(seed, 1))
	f := newFakeServer(t, seed)
	contentType := []string{protobuf, "application/json"}[rng.IntN(2)]
	for range 20 {
		f.randomEdit(rng)
	}
	c := dialFake(t, f.URL, contentType, nil)
	c.pace.patience = impatient
	r, stop := start(t, c)
	for range 25 {
		trouble := randomFaults(rng)
		f.with(func() { f.faults = trouble })
		for range rng.IntN(20) {
			f.randomEdit(rng)
			if rng.IntN(4) == 0 {
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
			}
		}
		switch rng.IntN(12) {
		case 0, 1, 2:
			f.compact()
		case 3: // a restart
			f.with(func() { f.faults.down = true })
			f.Server.CloseClientConnections()
			f.compact()
		}
	}
	f.with(func() { f.faults = faults{} })
	want := f.state(t, "node-a")
	defer func() {
		if t.Failed() {
			t.Logf("the receiver (-server +receiver):\n%s\nits problems: %v\nhow the client stands: %+v", r.diff(want), r.problems, c.State())
		}
	}()
	eventually(t, "the receiver has what the server has", func() bool { return r.diff(want) == "" && c.State().Connected })
	fresh, stopFresh := start(t, dialFake(t, f.URL, contentType, nil))
	eventually(t, "a fresh receiver is told", func() bool { return fresh.told() > 0 })
	eventually(t, "the receivers know the same problems", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		fresh.mu.Lock()
		defer fresh.mu.Unlock()
		return cmp.Equal(r.problems, fresh.problems)
	})
	stopFresh()
	stop()
	if diff := fresh.diff(r.snapshot); diff != "" {
		t.Errorf("one change after the other and a fresh start (-changes +fresh):\n%s", diff)
	}
	return f
}

func randomFaults(rng *rand.Rand) faults {
	some := func(most float64) float64 {
		if rng.IntN(2) == 0 {
			return 0
		}
		return rng.Float64() * most
	}
	f := faults{
		refuse: some(0.5), break_: some(0.5), gone: some(1), noStreams: some(1),
		cut: some(0.2), end: some(0.2), bookmark: some(1), pause: some(0.2), down: rng.IntN(8) == 0,
	}
	if rng.IntN(4) == 0 {
		f.forbidden = map[string]int{"servicecidrs": 403}
	}
	return f
}
