package nftables

import (
	"context"
	"errors"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// connections is how many connections the Backend of a lab's node tells of for Service number i.
func connections(t *testing.T, l *lab.Lab, b *Backend, i int) (n uint64) {
	t.Helper()
	err := l.Node().Do(func() error {
		all, err := b.Connections(t.Context())
		n = all[portID(i)]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Who asks while an Apply is under way need not wait until it ends.
func TestConnectionsDuringApply(t *testing.T) {
	b := New(DefaultOptions(), Deps{})
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := b.Connections(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	l := upLab(t)
	local := func(s *model.Service) { s.InternalPolicy = model.PolicyLocal }
	w := newRig(t, service(1, 5, 6), service(2, 5))
	b := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), b, w)
	want := uint64(0)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"at first", func() {}},
		{"another endpoint", func() { w.change(service(1, 5, 7)) }},
		{"no endpoint for a while", func() {
			w.change(service(1))
			applyAt(t, l.Node(), b, w)
			w.change(service(1, 5, 6))
		}},
		{"another list", func() { w.change(serviceWith(1, addrsOf("10.244.1.5", "10.244.1.6"), local)) }},
		{"another list and another table", func() {
			w.change(service(1, 5))
			w.rules.dirty.table = true
		}},
		{"another table", func() { w.rules.dirty.table = true }},
	} {
		step.do()
		applyAt(t, l.Node(), b, w)
		spread(t, l, 1, 10)
		if want += 10; connections(t, l, b, 1) != want || connections(t, l, b, 2) != 0 {
			t.Errorf("%s: %d connections counted, want %d; of the other, %d", step.name, connections(t, l, b, 1), want, connections(t, l, b, 2))
		}
	}
	succeed(t, l.Node().Command(t.Context(), "nft", "flush", "ruleset"))
	applyAt(t, l.Node(), b, w)
	if got := connections(t, l, b, 1); got != want {
		t.Errorf("after somebody flushed all: %d, want the %d that were known", got, want)
	}
	w.change(gone(1))
	applyAt(t, l.Node(), b, w)
	w.change(service(1, 5))
	applyAt(t, l.Node(), b, w)
	if got := connections(t, l, b, 1); got != 0 {
		t.Errorf("a new Service of the same name has %d connections", got)
	}
}
