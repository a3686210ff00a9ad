package iptables

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/testkit/sample"
)

// watching runs the Backend's Watch, and returns the calls of changed.
func (n *node) watching() <-chan time.Time {
	n.Helper()
	ctx, cancel := context.WithCancel(n.Context())
	calls, done := make(chan time.Time, 1000), make(chan error)
	go func() {
		done <- n.ns.Do(func() error { return n.backend.Watch(ctx, func() { calls <- time.Now() }) })
	}()
	n.Cleanup(func() {
		cancel()
		<-done
	})
	<-calls // it listens
	return calls
}

// TestRepairsWhatOthersDo: each thing that others do to our rules is told, and repaired at once. What we write ourselves
// is not told, nor what others do elsewhere: it would come ahead of the rest. The time that it takes is reported.
func TestRepairsWhatOthersDo(t *testing.T) {
	n := newNode(t, iptexec.NFT)
	calls := n.watching()
	n.apply(dualStack(), false)
	n.give(model.IPv4, "*filter\n:MINE - [0:0]\n-A MINE -j ACCEPT\n-A FORWARD -j MINE\nCOMMIT\n")
	for _, tt := range []struct {
		name, text string
		restored   []string
	}{
		{"chain flushed", "*nat\n-F KUBE-MARK-MASQ\nCOMMIT\n", []string{"IPv4 nat KUBE-MARK-MASQ"}},
		{"rule added to a chain", "*nat\n-A KUBE-MARK-MASQ -j ACCEPT\nCOMMIT\n", []string{"IPv4 nat KUBE-MARK-MASQ"}},
		{
			"jump deleted", "*nat\n-D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\nCOMMIT\n",
			[]string{"IPv4 nat PREROUTING → KUBE-SERVICES"},
		},
		{"chain deleted", "*mangle\n-X KUBE-PROXY-CANARY\nCOMMIT\n", []string{"IPv4 mangle KUBE-PROXY-CANARY"}},
		{"rules of the firewall flushed", "*filter\n-F KUBE-FIREWALL\nCOMMIT\n", nil},
	} {
		start := time.Now()
		n.give(model.IPv4, tt.text)
		given := time.Now()
		heard := <-calls
		if heard.Before(start) {
			t.Errorf("%s: told before it happened", tt.name)
		}
		result := n.apply(dualStack(), false)
		t.Logf("%s: given in %v, heard after %v, repaired after %v", tt.name, given.Sub(start), heard.Sub(start), time.Since(given))
		if diff := cmp.Diff(tt.restored, result.Restored); diff != "" {
			t.Errorf("%s: restored (-want +got):\n%s", tt.name, diff)
		}
		if again := n.apply(dualStack(), true); again.Written != 0 {
			t.Errorf("%s: still %+v", tt.name, again)
		}
	}
}

// TestLegacyTellsNothing: there is nothing to wait for.
func TestLegacyTellsNothing(t *testing.T) {
	b, _ := newTestBackend(true)
	if err := b.Watch(t.Context(), func() { t.Error("told of a change") }); err != nil {
		t.Error(err)
	}
}

// fakeListener hears nothing.
type fakeListener struct{ paused, closed bool }

func (l *fakeListener) Receive(ctx context.Context, _ func(uint16, uint32, []byte)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (l *fakeListener) Pause() error  { l.paused = true; return nil }
func (l *fakeListener) Resume() error { l.paused = false; return nil }
func (l *fakeListener) Close() error  { l.closed = true; return nil }

// interfering are Tables that somebody else writes to at the same time as we do.
type interfering struct {
	*fakeTables
	listener *fakeListener
	t        *testing.T
	now      bool
}

func (i *interfering) Restore(ctx context.Context, text []byte) error {
	if !i.listener.paused {
		i.t.Error("the listener hears what we write")
	}
	if i.now {
		i.remove(Nat, chainServices)
	}
	return i.fakeTables.Restore(ctx, text)
}

// TestMissesNothingWhileItWrites: it is deaf meanwhile, but sees that somebody else wrote too.
func TestMissesNothingWhileItWrites(t *testing.T) {
	_, fakes := newTestBackend(false)
	listener := &fakeListener{}
	four := &interfering{fakeTables: fakes[0], listener: listener, t: t}
	b := New(DefaultOptions(), Deps{
		Tables: [2]Tables{four, fakes[1]}, RouteLocalnet: func(bool) error { return nil },
		Listen: func() (Listener, error) { return listener, nil },
	})
	ctx, cancel := context.WithCancel(t.Context())
	calls, done := make(chan bool, 10), make(chan error)
	go func() { done <- b.Watch(ctx, func() { calls <- true }) }()
	<-calls
	apply := func(r *Ruleset, told int) {
		t.Helper()
		if _, err := b.Apply(t.Context(), r, backend.Request{}); err != nil {
			t.Fatal(err)
		}
		if len(calls) != told || listener.paused {
			t.Errorf("told of %d changes, want %d; paused for ever: %t", len(calls), told, listener.paused)
		}
	}
	apply(webRules(), 0)
	four.now = true
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	apply(Compile(planOf(s, sl), DefaultOptions()), 1)
	cancel()
	<-done
	if !listener.closed {
		t.Error("the listener is not closed")
	}
}
