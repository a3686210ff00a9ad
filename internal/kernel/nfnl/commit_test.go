package nfnl_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
)

func TestCommitMovesTheGenerationByOne(t *testing.T) {
	c := openWithTable(t)
	before := generation(t, c)
	for i := range uint32(3) {
		commit(t, c, newBatch().elements(newElement, unix.NLM_F_CREATE, i).end())
		if got := generation(t, c); got != before+i+1 {
			t.Errorf("generation is %d after %d commits, want %d", got, i+1, before+i+1)
		}
	}
	if got := present(t, c, 0, 1, 2, 3); !cmp.Equal(got, []uint32{0, 1, 2}) {
		t.Errorf("elements %v, want 0, 1 and 2", got)
	}
}

func TestCommitIsAllOrNothing(t *testing.T) {
	c := openWithTable(t, 1)
	before := generation(t, c)
	err := c.Commit(t.Context(), newBatch().
		elements(newElement, unix.NLM_F_CREATE, 2).
		elements(delElement, 0, 7).
		elements(newElement, unix.NLM_F_CREATE, 3).
		end())
	if !errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EEXIST) {
		t.Errorf("error is %v, want ENOENT", err)
	}
	if got := refusals(err); len(got) != 1 || got[0].Seq != 2 {
		t.Errorf("refused %v, want message 2", got)
	}
	if got := present(t, c, 1, 2, 3); !cmp.Equal(got, []uint32{1}) {
		t.Errorf("elements %v, want what was there before", got)
	}
	if got := generation(t, c); got != before {
		t.Errorf("generation moved from %d to %d", before, got)
	}
}

func TestCommitNamesEveryMessageAtFault(t *testing.T) {
	c := openWithTable(t, 1)
	err := c.Commit(t.Context(), newBatch().
		elements(delElement, 0, 7).
		elements(newElement, unix.NLM_F_CREATE, 2).
		elements(newElement, unix.NLM_F_CREATE|unix.NLM_F_EXCL, 1).
		message(newElement, unix.NLM_F_CREATE, elements("missing", 1)).
		end())
	want := nfnl.Errors{
		// The kernel points at the element within the list, and at the name of the set.
		{Seq: 1, Offset: 40, Errno: syscall.ENOENT},
		{Seq: 3, Offset: 40, Errno: syscall.EEXIST},
		{Seq: 4, Offset: 28, Errno: syscall.ENOENT},
	}
	got := refusals(err)
	if len(got) == len(want) && got[2].Offset == 0 {
		want[2].Offset = 0 // Linux 6.1 does not point at the name of a set that is missing
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	first, _ := errors.AsType[*nfnl.Error](err)
	if first == nil || first.Seq != 1 {
		t.Errorf("the first error found is %v, want that of message 1", first)
	}
}

// After a refusal the socket is as good as new.
func TestCommitAfterRefusal(t *testing.T) {
	c := openWithTable(t)
	bad := newBatch()
	const many = 3000
	for range many {
		bad.elements(delElement, 0, 7)
	}
	for range 3 {
		got := refusals(c.Commit(t.Context(), bad.end()))
		if len(got) != many || got[many-1].Seq != many {
			t.Fatalf("%d refusals, want %d", len(got), many)
		}
		commit(t, c, newBatch().elements(newElement, unix.NLM_F_CREATE, 1).end())
	}
}

func TestCheckWritesNothing(t *testing.T) {
	c := openWithTable(t, 1)
	before := generation(t, c)
	if err := c.Check(t.Context(), newBatch().elements(newElement, unix.NLM_F_CREATE, 2).end()); err != nil {
		t.Error(err)
	}
	err := c.Check(t.Context(), newBatch().elements(newElement, unix.NLM_F_CREATE, 2).elements(delElement, 0, 7).end())
	if got := refusals(err); len(got) != 1 || got[0].Seq != 2 || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("error is %v, want ENOENT of message 2", err)
	}
	if got := present(t, c, 1, 2); !cmp.Equal(got, []uint32{1}) {
		t.Errorf("elements %v, want 1", got)
	}
	if got := generation(t, c); got != before {
		t.Errorf("generation moved from %d to %d", before, got)
	}
}

// What only shows in the whole is refused too, first the message that completes it.
func TestRefusalOfLoop(t *testing.T) {
	c := openWithTable(t)
	input := nest(unix.NFTA_CHAIN_HOOK, join(number(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_LOCAL_IN), number(unix.NFTA_HOOK_PRIORITY, 0)))
	b := newBatch().chain("base", input).chain("a").chain("b").jump("base", "a").jump("a", "b")
	for _, try := range []func(context.Context, []byte) error{c.Check, c.Commit} {
		if err := try(t.Context(), b.end()); err != nil {
			t.Fatal(err)
		}
	}
	before := generation(t, c)
	loop := newBatch().elements(newElement, unix.NLM_F_CREATE, 1).jump("b", "a").elements(newElement, unix.NLM_F_CREATE, 2).end()
	for _, try := range []func(context.Context, []byte) error{c.Check, c.Commit} {
		err := try(t.Context(), loop)
		if got := refusals(err); len(got) == 0 || got[0].Seq != 2 || !errors.Is(err, syscall.EMLINK) {
			t.Errorf("error is %v, want EMLINK of message 2", err)
		}
	}
	if after := generation(t, c); after != before {
		t.Errorf("generation moved from %d to %d", before, after)
	}
}

func TestCommitOfWhatIsNoBatch(t *testing.T) {
	c := open(t)
	element := newBatch().elements(newElement, unix.NLM_F_CREATE, 1)
	whole := element.end()
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"no batch end":      element.bytes,
		"no batch begin":    whole[20:],
		"two batch begins":  join(newBatch().bytes, whole),
		"after the end":     join(whole, whole),
		"cut":               whole[:len(whole)-1],
		"a length too long": join([]byte{255}, whole[1:]),
		"a length of 0":     join(whole[:20], []byte{0, 0, 0, 0}, whole[24:]),
	} {
		if err := c.Commit(t.Context(), b); err == nil || errors.Is(err, nfnl.ErrUnanswered) {
			t.Errorf("%s: error is %v, want what is wrong with the batch", name, err)
		}
	}
	if err := c.Commit(t.Context(), newBatch().end()); err != nil {
		t.Errorf("a batch of no messages: %v", err)
	}
}

func TestCommitAfterContext(t *testing.T) {
	c := openWithTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Commit(ctx, newBatch().elements(newElement, unix.NLM_F_CREATE, 1).end()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
	if got := present(t, c, 1); len(got) != 0 {
		t.Errorf("elements %v, want none", got)
	}
}

func refusals(err error) nfnl.Errors {
	all, _ := errors.AsType[nfnl.Errors](err)
	return all
}

// present asks for each element and returns those that are there.
func present(t testing.TB, c *nfnl.Conn, keys ...uint32) (found []uint32) {
	t.Helper()
	for _, key := range keys {
		err := c.Get(t.Context(), getElement, request(elements(setName, key)), func(kind uint16, _ []byte) error {
			if kind != newElement {
				t.Errorf("message of type %#x, want an element", kind)
			}
			found = append(found, key)
			return nil
		})
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			t.Fatal(err)
		}
	}
	return found
}
