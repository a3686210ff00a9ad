package nfnl_test

import (
	"errors"
	"math"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/testkit/nstest"
)

// ofLength is a batch of so many bytes that adds one element to the set. The rest are attributes that the kernel ignores.
func ofLength(n int, key uint32) []byte {
	b := newBatch()
	const most = 60_000
	const overhead = 24 // of a message with one attribute
	for rest := n - len(newBatch().elements(newElement, 0, key).end()); rest > 0; {
		size := min(rest, most)
		if size < rest && rest-size < overhead {
			size -= overhead
		}
		b.message(newTable, 0, text(unix.NFTA_TABLE_NAME, tableName), attr(math.MaxInt16>>1, make([]byte, size-overhead-8)))
		rest -= size
	}
	return b.elements(newElement, unix.NLM_F_CREATE, key).end()
}

func TestLimit(t *testing.T) {
	openWithTable(t)
	c, err := nfnl.OpenWith(128 << 10) // small enough for every user
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if got, want := c.Limit(), 256<<10-32; got != want {
		t.Errorf("limit is %d, want %d", got, want)
	}
	largest, tooLarge := ofLength(c.Limit(), 1), ofLength(c.Limit()+4, 2)
	if len(largest) != c.Limit() || len(tooLarge) != c.Limit()+4 {
		t.Fatalf("batches of %d and %d bytes, limit %d", len(largest), len(tooLarge), c.Limit())
	}
	commit(t, c, largest)
	if err := c.Commit(t.Context(), tooLarge); !errors.Is(err, nfnl.ErrTooLarge) {
		t.Errorf("error is %v, want ErrTooLarge", err)
	}
	if err := c.WriteRaw(tooLarge); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("the kernel says %v, want that the limit is its own", err)
	}
	if got := present(t, c, 1, 2); !cmp.Equal(got, []uint32{1}) {
		t.Errorf("elements %v, want 1", got)
	}
}

// root is not held to what the system lets others have.
func TestLimitOfRoot(t *testing.T) {
	nstest.RequireRoot(t, "only root may exceed net.core.wmem_max")
	if got, want := open(t).Limit(), 512<<20-32; got != want {
		t.Errorf("limit is %d, want %d", got, want)
	}
}

// What does not fit the receive buffer is no success, and leaves nothing behind for the next commit.
func TestCommitWhoseAnswersAreLost(t *testing.T) {
	const n = 3000
	c := openWithTable(t)
	if err := c.SetReceiveBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	bad, chatty := newBatch(), newBatch()
	for i := range uint32(n) {
		bad.elements(delElement, 0, n+1)
		chatty.elements(newElement, unix.NLM_F_CREATE|unix.NLM_F_ACK, i)
	}
	for range 3 {
		got := refusals(c.Commit(t.Context(), bad.end()))
		if len(got) == 0 || len(got) == n || got[0].Seq != 1 {
			t.Errorf("%d refusals, want the first of %d", len(got), n)
		}
		if err := c.Commit(t.Context(), chatty.end()); !errors.Is(err, nfnl.ErrUnanswered) {
			t.Errorf("error is %v, want ErrUnanswered", err)
		}
		if got := present(t, c, 0, n-1); len(got) != 2 {
			t.Errorf("elements %v, want both", got)
		}
		commit(t, c, newBatch().elements(newElement, unix.NLM_F_CREATE, n).end())
	}
}
