package nfnl_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
)

func listen(t testing.TB, ours uint32) *nfnl.Listener {
	t.Helper()
	l, err := nfnl.Listen(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// heard is what a listener received, by type of message.
type heard struct {
	messages map[uint16]int
	ports    map[uint32]bool
}

// until receives up to the new generation that a commit of the given port makes.
func until(t testing.TB, l *nfnl.Listener, port uint32) heard {
	t.Helper()
	h := heard{map[uint16]int{}, map[uint32]bool{}}
	for end := false; !end; {
		err := l.Receive(t.Context(), func(kind uint16, from uint32, _ []byte) {
			h.messages[kind]++
			h.ports[from] = true
			end = end || kind == newGen && from == port
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func add(t testing.TB, c *nfnl.Conn, key uint32) {
	t.Helper()
	commit(t, c, newBatch().elements(newElement, unix.NLM_F_CREATE, key).end())
}

func TestListenerHearsOthersOnly(t *testing.T) {
	ours, other := openWithTable(t), open(t)
	l := listen(t, ours.PortID())
	for i := range uint32(3) {
		add(t, ours, 2*i)
		add(t, other, 2*i+1)
	}
	for range 3 {
		h := until(t, l, other.PortID())
		if h.messages[newElement] != 1 || h.messages[newGen] != 1 || len(h.ports) != 1 {
			t.Errorf("heard %v, want one element and one generation of %d", h, other.PortID())
		}
	}
}

func TestListenerOfAll(t *testing.T) {
	ours, other := openWithTable(t), open(t)
	l := listen(t, 0)
	add(t, ours, 1)
	add(t, other, 2)
	h := until(t, l, other.PortID())
	if h.messages[newElement] != 2 || !h.ports[ours.PortID()] || !h.ports[other.PortID()] {
		t.Errorf("heard %v, want an element of each", h)
	}
}

func TestListenerLosesNothing(t *testing.T) {
	other := openWithTable(t)
	l := listen(t, open(t).PortID())
	const n = 10_000
	fill(t, other, n)
	if h := until(t, l, other.PortID()); h.messages[newElement] != n {
		t.Errorf("heard %d elements, want %d", h.messages[newElement], n)
	}
}

func TestListenerPauses(t *testing.T) {
	other := openWithTable(t)
	l := listen(t, 0)
	add(t, other, 1)
	if err := l.Pause(); err != nil {
		t.Fatal(err)
	}
	add(t, other, 2)
	if err := l.Resume(); err != nil {
		t.Fatal(err)
	}
	add(t, other, 3)
	for _, when := range []string{"before the pause", "after it"} {
		if h := until(t, l, other.PortID()); h.messages[newElement] != 1 {
			t.Errorf("%s: heard %v, want one element", when, h)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Receive(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

// watched is a context that tells when somebody begins to wait for it.
type watched struct {
	context.Context
	waiting func()
}

func (w watched) Done() <-chan struct{} {
	w.waiting()
	return w.Context.Done()
}

// blocked runs Receive and returns when that has nothing to receive and goes to wait.
func blocked(ctx context.Context, l *nfnl.Listener) <-chan error {
	ended, waits := make(chan error), make(chan struct{})
	w := watched{ctx, sync.OnceFunc(func() { close(waits) })}
	go func() { ended <- l.Receive(w, func(uint16, uint32, []byte) {}) }()
	<-waits
	return ended
}

func TestListenerContext(t *testing.T) {
	other := openWithTable(t)
	l := listen(t, 0)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := blocked(ctx, l)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("error is %v, want that of the context", err)
		}
	}
	add(t, other, 1)
	if h := until(t, l, other.PortID()); h.messages[newElement] != 1 {
		t.Errorf("heard %v after the context of an earlier call ended, want one element", h)
	}
}

func TestListenerClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	open(t)
	for range 100 {
		l := listen(t, 0)
		ended := blocked(t.Context(), l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, os.ErrClosed) {
			t.Fatalf("error is %v, want that it is closed", err)
		}
	}
}

// After a loss every change is heard again, from the very next one.
func TestListenerThatLoses(t *testing.T) {
	other := openWithTable(t)
	l := listen(t, 0)
	if err := l.SetReceiveBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(3) {
		fill(t, other, 10_000*(i+1))
		if err := l.Receive(t.Context(), func(uint16, uint32, []byte) {}); !errors.Is(err, nfnl.ErrLost) {
			t.Fatalf("error is %v, want ErrLost", err)
		}
		add(t, other, 1_000_000+i)
		if h := until(t, l, other.PortID()); h.messages[newElement] != 1 || h.messages[newGen] != 1 {
			t.Errorf("heard %v, want one element", h)
		}
	}
}
