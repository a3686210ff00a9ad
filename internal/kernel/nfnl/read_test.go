package nfnl_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
)

// setOf is the payload that asks for all elements of a set.
func setOf(name string) []byte {
	return request(text(unix.NFTA_SET_ELEM_LIST_TABLE, tableName), text(unix.NFTA_SET_ELEM_LIST_SET, name))
}

// fill puts the numbers below n into the set.
func fill(t testing.TB, c *nfnl.Conn, n uint32) {
	t.Helper()
	commit(t, c, filling(n))
}

// filling is the batch of fill.
func filling(n uint32) []byte {
	const perMessage = 1000
	b := newBatch()
	for from := uint32(0); from < n; from += perMessage {
		var keys []uint32
		for key := from; key < min(n, from+perMessage); key++ {
			keys = append(keys, key)
		}
		b.elements(newElement, unix.NLM_F_CREATE, keys...)
	}
	return b.end()
}

// countElements counts the elements in the messages of a dump.
func countElements(n *int) func(uint16, []byte) error {
	return func(kind uint16, data []byte) error {
		if kind != newElement {
			return errors.New("no elements")
		}
		for a := range attributes(data[4:], unix.NFTA_SET_ELEM_LIST_ELEMENTS) {
			for range attributes(a, unix.NFTA_LIST_ELEM) {
				*n++
			}
		}
		return nil
	}
}

func TestDump(t *testing.T) {
	c := openWithTable(t)
	for _, want := range []int{0, 1, 20_000} {
		fill(t, c, uint32(want))
		got := 0
		if err := c.Dump(t.Context(), getElement, setOf(setName), countElements(&got)); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%d elements, want %d", got, want)
		}
	}
}

func TestDumpOfWhatIsMissing(t *testing.T) {
	c := openWithTable(t)
	err := c.Dump(t.Context(), getElement, setOf("missing"), func(uint16, []byte) error { return nil })
	if !errors.Is(err, syscall.ENOENT) {
		t.Errorf("error is %v, want ENOENT", err)
	}
}

// Whatever ends a dump early, the next request gets its own answer.
func TestDumpThatEndsEarly(t *testing.T) {
	c, other := openWithTable(t), open(t)
	const n = 20_000
	fill(t, c, n)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancel(t.Context())
	for _, end := range []struct {
		name string
		ctx  context.Context
		at   func() error
		want error
	}{
		{"the function's error", t.Context(), func() error { return enough }, enough},
		{"the context", ctx, func() error { cancel(); return nil }, context.Canceled},
		{"a change", t.Context(), func() error {
			return other.Commit(t.Context(), newBatch().elements(newElement, unix.NLM_F_CREATE, n).elements(delElement, 0, n).end())
		}, nfnl.ErrInterrupted},
	} {
		err := c.Dump(end.ctx, getElement, setOf(setName), func(uint16, []byte) error { return end.at() })
		if !errors.Is(err, end.want) {
			t.Errorf("%s: error is %v, want %v", end.name, err, end.want)
		}
		got := 0
		if err := c.Dump(t.Context(), getElement, setOf(setName), countElements(&got)); err != nil || got != n {
			t.Errorf("after %s: %d elements, want %d; error %v", end.name, got, n, err)
		}
	}
}

// A sample goes on where a dump ends, and nothing that stays is told of wrongly.
func TestSampleGoesOn(t *testing.T) {
	c, other := openWithTable(t), open(t)
	const n = 20_000
	fill(t, c, n)
	got, messages := 0, 0
	err := c.Sample(t.Context(), getElement, setOf(setName), func(kind uint16, data []byte) error {
		if messages++; messages == 2 {
			commit(t, other, newBatch().elements(newElement, unix.NLM_F_CREATE, n).elements(delElement, 0, n).end())
		}
		return countElements(&got)(kind, data)
	})
	if err != nil || messages < 3 || got < n-1 || got > n+1 {
		t.Errorf("%d elements in %d messages, want about %d; error %v", got, messages, n, err)
	}
}

func TestGet(t *testing.T) {
	c := openWithTable(t, 1, 2, 3)
	got := 0
	if err := c.Get(t.Context(), getElement, request(elements(setName, 1, 3)), countElements(&got)); err != nil {
		t.Fatal(err)
	}
	if got != 2 {
		t.Errorf("%d elements, want 2", got)
	}
	none := func(uint16, []byte) error { return errors.New("something") }
	if err := c.Get(t.Context(), getTable, request(text(unix.NFTA_TABLE_NAME, "missing")), none); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("error is %v, want ENOENT", err)
	}
}

func TestCloseEndsAll(t *testing.T) {
	c := open(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generation(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error is %v, want %v", err, os.ErrClosed)
	}
}
