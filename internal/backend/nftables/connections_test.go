package nftables

import (
	"context"
	"errors"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// connections is how many connections the Backend of a lab's node tells of for Service number i.
func connections(t *testing.T, l *lab.Lab, b *Backend, i int) uint64 {
	t.Helper()
	return allConnections(t, l, b)[portID(i)]
}

func allConnections(t *testing.T, l *lab.Lab, b *Backend) (all map[plan.PortID]uint64) {
	t.Helper()
	err := l.Node().Do(func() (err error) {
		all, err = b.Connections(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// meddling is a Socket that does something once it has read a sample.
type meddling struct {
	Socket
	do func()
}

func (m *meddling) Sample(ctx context.Context, kind uint16, request []byte, each func(uint16, []byte) error) error {
	err := m.Socket.Sample(ctx, kind, request, each)
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return err
}

// An Apply need not wait for a reading, and one that comes into it confuses no counts: not those of a list that goes, nor
// of one that has its number then, nor of a table that is made anew.
func TestApplyDuringConnections(t *testing.T) {
	l := upLab(t)
	local := func(s *model.Service) { s.InternalPolicy = model.PolicyLocal }
	w := newRig(t, service(1, 5), service(2, 5))
	m := &meddling{}
	b := New(DefaultOptions(), Deps{Open: func() (Socket, error) {
		socket, err := openSocket()
		if m.Socket == nil { // the second one reads counters
			m.Socket = socket
			return socket, err
		}
		m.Socket = socket
		return m, err
	}})
	t.Cleanup(func() { _ = b.Close() })
	applyAt(t, l.Node(), b, w)
	for _, step := range []struct {
		name string
		do   func()
		want [4]uint64 // of each Service, after three connections of the first before the reading, and two in it
	}{
		{"another list", func() { w.change(serviceWith(1, addrsOf("10.244.1.5"), local)) }, [4]uint64{1: 5}},
		{"another table", func() { w.rules.dirty.table = true }, [4]uint64{1: 10}},
		{"a Service goes, and another has its number", func() {
			for _, l := range w.rules.ports[portID(1)].lists {
				w.rules.lists.last = max(uint32(l.number), 1) - 1 // the next to be given out
			}
			w.change(gone(1))
			applyAt(t, l.Node(), b, w)
			w.change(service(3, 5))
		}, [4]uint64{}},
	} {
		spread(t, l, 1, 3)
		m.do = func() {
			spread(t, l, 1, 2)
			step.do()
			applyAt(t, l.Node(), b, w)
		}
		for _, when := range []string{"meanwhile", "afterwards"} {
			all := allConnections(t, l, b)
			for i, want := range step.want {
				if got := all[portID(i)]; got != want {
					t.Errorf("%s, %s: %d connections of Service %d, want %d", step.name, when, got, i, want)
				}
			}
		}
	}
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
