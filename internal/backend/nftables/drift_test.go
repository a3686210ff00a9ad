package nftables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/model"
)

// watched is a Backend that is told of what others do.
type watched struct {
	*Backend
	changed chan struct{}
}

// watch has a Backend listen until the test ends.
func watch(t testing.TB, b *Backend) *watched {
	t.Helper()
	w := &watched{b, make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- b.Watch(ctx, w.tell)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	w.wait(t) // as it begins
	return w
}

func (w *watched) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// forget drops what was told so far, so that wait is for what comes. An Apply that ends in doubt asks for another one,
// without any change.
func (w *watched) forget() {
	select {
	case <-w.changed:
	default:
	}
}

// damage has nft do what a text says, and waits until the kernel told of it.
func (w *watched) damage(t testing.TB, text string) {
	t.Helper()
	w.forget()
	nftFile(t, text)
	w.wait(t)
}

// wait waits until the kernel told of a change.
func (w *watched) wait(t testing.TB) {
	t.Helper()
	select {
	case <-w.changed:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was heard")
	}
}

// drifts is what others may do to the table, and what is restored.
var drifts = []struct{ name, nft, want string }{
	{"an element is deleted", "delete element inet sluice services4 { 10.96.0.1 . tcp . 80 }", "element 10.96.0.1 . tcp . 80 of services4 (default/service-1:http)"},
	{"a slot is deleted", "delete element inet sluice endpoints4 { 0:1000 . 1 }", "element 0:1000 . 1 of endpoints4"},
	{"an element is added", "add element inet sluice services4 { 10.96.0.77 . tcp . 80 : 0:1 }", "element 10.96.0.77 . tcp . 80 of services4"},
	{"a shared element is added", "add element inet sluice cluster-ips4 { 10.96.0.77 }", "element 10.96.0.77 of cluster-ips4"},
	{"a range is added", "add element inet sluice service-cidrs4 { 10.97.0.0/16 }", "element 10.97.0.0 of service-cidrs4"},
	{"a slot for all keys is added", "add element inet sluice endpoints4 { * : 10.244.1.99 . 1 }", "element * of endpoints4"},
	{"a route for all keys is added", "add element inet sluice services4 { * : 0:100e }", "element * of services4"},
	{"a source of all keys is added", "add element inet sluice allowed4 { * }", "element * of allowed4"},
	{"an element is changed", "delete element inet sluice services4 { 10.96.0.1 . tcp . 80 }; add element inet sluice services4 { 10.96.0.1 . tcp . 80 : 0:1 }", "element 10.96.0.1 . tcp . 80 of services4 (default/service-1:http)"},
	{"a map is flushed", "flush map inet sluice services4", "element 10.96.0.1 . tcp . 80 of services4 (default/service-1:http)"},
	{"a chain is flushed", "flush chain inet sluice balance", "rules of chain balance"},
	{"the chain of a bucket is flushed", "flush chain inet sluice random-3", "rules of chain random-3"},
	{"a rule is added", "add rule inet sluice balance accept", "rules of chain balance"},
	{"a chain is added", "add chain inet sluice other", "chain other"},
	{"a set is added", "add set inet sluice other { type ipv4_addr; }", "set other"},
	{"the table is put to sleep", "add table inet sluice { flags dormant; }", "flags of table inet sluice"},
	{"the table is deleted", "delete table inet sluice", "table inet sluice"},
	{"all is flushed", "flush ruleset", "table inet sluice"},
}

func TestDriftIsRepaired(t *testing.T) {
	w := newRig(t, service(1, 5, 6, 7), service(2), service(3, 5))
	b := watch(t, inKernel(t))
	apply(t, b.Backend, w.rules)
	for _, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			w.TB = t
			b.damage(t, d.nft)
			got := apply(t, b.Backend, w.rules)
			if !slices.Contains(got.Restored, d.want) {
				t.Errorf("restored %q, want %q", got.Restored, d.want)
			}
			if got := apply(t, b.Backend, w.rules); got.Written != 0 || len(got.Restored) != 0 {
				t.Errorf("once more: %+v, want nothing", got)
			}
			restarts(t, w)
		})
	}
}

// Without a listener the generation tells that something changed.
func TestDriftNobodyListensTo(t *testing.T) {
	w := newRig(t, service(1, 5, 6, 7), service(2), service(3, 5))
	b := inKernel(t)
	apply(t, b, w.rules)
	for _, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			w.TB = t
			nftFile(t, d.nft)
			if got := apply(t, b, w.rules); !slices.Contains(got.Restored, d.want) {
				t.Errorf("restored %q, want %q", got.Restored, d.want)
			}
			restarts(t, w)
		})
	}
}

// What others do in other tables is none of ours.
func TestOtherTables(t *testing.T) {
	w := newRig(t, service(1, 5, 6, 7))
	b := watch(t, inKernel(t))
	apply(t, b.Backend, w.rules)
	b.forget()
	nftFile(t, "add table ip sluice; add table inet sluices; add chain inet sluices services4; flush ruleset ip; delete table inet sluices")
	nftFile(t, "delete element inet sluice services4 { 10.96.0.1 . tcp . 80 }")
	b.wait(t)
	if got := apply(t, b.Backend, w.rules); got.Written != 1 || len(got.Restored) != 1 {
		t.Errorf("%+v, want one element", got)
	}
	if got := applyReq(t, b.Backend, w.rules, recheck); got.Written != 0 {
		t.Errorf("recheck: %+v, want nothing", got)
	}
}

// What others do while a change is on its way is found as well.
func TestDriftMeetsChange(t *testing.T) {
	w := newRig(t, service(1, 5, 6, 7), service(2, 5, 6))
	b := watch(t, inKernel(t))
	apply(t, b.Backend, w.rules)
	for _, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			w.TB = t
			b.forget()
			nftFile(t, d.nft)
			w.change(service(1, 5, 8)) // perhaps before it is heard
			apply(t, b.Backend, w.rules)
			b.wait(t)
			apply(t, b.Backend, w.rules)
			restarts(t, w)
			w.change(service(1, 5, 6, 7))
			apply(t, b.Backend, w.rules)
			restarts(t, w)
		})
	}
}

// The list of what is restored has an end.
func TestManyElementsAreCounted(t *testing.T) {
	var all []model.Delta
	for i := range 100 {
		all = append(all, service(i, 5))
	}
	w := newRig(t, all...)
	b := watch(t, inKernel(t))
	apply(t, b.Backend, w.rules)
	b.damage(t, "flush map inet sluice services4")
	got := apply(t, b.Backend, w.rules)
	if n := len(got.Restored); n != maxNames+1 || !strings.HasSuffix(got.Restored[n-1], "more elements") {
		t.Errorf("%d names, the last is %q", n, got.Restored[n-1])
	}
	restarts(t, w)
}

// If too much differs to be repaired one by one, the table is made anew.
func TestThousandsOfElements(t *testing.T) {
	w := bigRig(t, 1000, 10)
	b := watch(t, inKernel(t))
	apply(t, b.Backend, w.rules)
	for _, do := range []func(){
		func() { nftFile(t, "flush map inet sluice endpoints4") },
		func() {
			for some := range slices.Chunk(manyNodePorts(), 1000) { // an ordinary user's buffer has no room for all
				nftFile(t, "add element inet sluice node-ports4 { "+strings.Join(some, ", ")+" }")
			}
		},
	} {
		b.forget()
		do()
		b.wait(t)
		got := apply(t, b.Backend, w.rules)
		if n := len(got.Restored); n == 0 || n > maxNames+1 || got.Restored[n-1] != "thousands of elements" {
			t.Errorf("restored %q", got.Restored)
		}
		apply(t, b.Backend, w.rules) // what was heard since
		restarts(t, w)
	}
}

func manyNodePorts() (all []string) {
	for port := range manyDifferences + 1 {
		all = append(all, fmt.Sprintf("tcp . %d : 0:0", port+1))
	}
	return all
}
