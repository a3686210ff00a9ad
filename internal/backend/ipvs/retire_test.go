package ipvs

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
)

// TestRetire: when another mode has taken over, connections go on until they end, also if the process is another one by
// then.
func TestRetire(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	w.apply(backend.Request{})
	w.connect("10.244.1.6:8080", 2)
	retire := func(want int) {
		t.Helper()
		if left, err := w.backend.Retire(t.Context()); err != nil || left != want {
			t.Errorf("%d left, %v, want %d", left, err, want)
		}
	}
	retire(1)
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", "-t 10.96.0.10:80 -r 10.244.1.6:8080 -w 0", "local 10.96.0.10 src 192.168.10.11")
	w.restart()
	retire(1)
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.6:8080 -w 0", "local 10.96.0.10 src 192.168.10.11")
	w.connect("10.244.1.6:8080", 0)
	for range 2 {
		retire(0)
		if w.want(); w.links[DeviceName] != nil || w.lost != 0 {
			t.Errorf("the device is left, or %d connections lost", w.lost)
		}
	}
}

// TestRetireUDP: an endpoint that answers keeps its clients, and one that does not any more loses them.
func TestRetireUDP(t *testing.T) {
	w := newRig(t, Options{}, webWith(udp, 5, 6))
	w.apply(backend.Request{})
	w.connect("10.244.1.5:8080", 1)
	w.connect("10.244.1.6:8080", 1)
	packets := func(endpoint string, received, sent uint64) {
		for _, s := range w.servers {
			d := s.destinations[netip.MustParseAddrPort(endpoint)]
			d.Received, d.Sent = d.Received+received, d.Sent+sent
		}
	}
	for range 3 {
		if left, err := w.backend.Retire(t.Context()); err != nil || left != 1 {
			t.Fatalf("%d left, %v", left, err)
		}
		packets("10.244.1.5:8080", 5, 4)
	}
	packets("10.244.1.6:8080", 1, 0)
	if _, err := w.backend.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want("-u 10.96.0.10:80 -s rr", "-u 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", "local 10.96.0.10 src 192.168.10.11")
}

// TestLeftoversLoadNothing: a kernel that has no virtual servers is not made to have them.
func TestLeftoversLoadNothing(t *testing.T) {
	w := newRig(t, Options{})
	w.backend.deps.Loaded = func() bool { return false }
	w.backend.deps.Servers = func() (Servers, error) {
		t.Error("ip_vs is loaded")
		return w.kernel, nil
	}
	w.links[DeviceName] = map[netip.Prefix]bool{}
	if left, err := w.backend.Retire(t.Context()); err != nil || left != 0 || w.links[DeviceName] != nil {
		t.Errorf("%d left, %v, links %v", left, err, w.links)
	}
	if removed, err := w.backend.CleanupServers(t.Context()); err != nil || removed != nil {
		t.Errorf("removed %q, %v", removed, err)
	}
}

func TestCleanupTells(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.apply(backend.Request{})
	removed, err := w.backend.CleanupServers(t.Context())
	if err != nil || !slices.Equal(removed, []string{"1 virtual server", "interface kube-ipvs0"}) {
		t.Errorf("removed %q, %v", removed, err)
	}
	w.want()
}

// TestWatch: whoever drains is taken away some seconds after the last connection ended, and nobody is disturbed before.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRig(t, Options{}, web(5, 6))
		w.apply(backend.Request{})
		w.connect("10.244.1.6:8080", 1)
		w.change(web(5))
		w.apply(backend.Request{})
		ctx, stop := context.WithCancel(t.Context())
		var calls atomic.Int64
		ended := make(chan error)
		go func() { ended <- w.backend.Watch(ctx, func() { calls.Add(1) }) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("called %d times, want once at first", n)
		}
		w.backend.mu.Lock() // the kernel in memory has no lock of its own
		w.connect("10.244.1.6:8080", 0)
		w.backend.mu.Unlock()
		time.Sleep(2 * drainPeriod)
		synctest.Wait()
		if calls.Load() == 1 {
			t.Error("not called though the last connection ended")
		}
		w.apply(backend.Request{})
		w.want(w.rules.wanted()...)
		before := calls.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls.Load() != before {
			t.Error("called though nothing drains")
		}
		stop()
		must(t, <-ended)
	})
}

// TestCompare tells what Apply would do, and does not count what drains.
func TestCompare(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	compare := func(want ...string) {
		t.Helper()
		if got, err := w.backend.Compare(t.Context(), w.rules); err != nil || !slices.Equal(got, want) {
			t.Errorf("differences:\n%s\n%v\nwant\n%s", join(got), err, join(want))
		}
	}
	compare(
		"ip link add kube-ipvs0 type dummy", "ipvsadm -A -t 10.96.0.10:80 -s rr",
		"ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.5:8080 -m -w 1", "ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.6:8080 -m -w 1",
		"ip address add 10.96.0.10/32 dev kube-ipvs0",
	)
	w.apply(backend.Request{})
	compare()
	w.connect("10.244.1.6:8080", 1)
	w.change(web(5))
	compare("ipvsadm -e -t 10.96.0.10:80 -r 10.244.1.6:8080 -m -w 0")
	w.apply(backend.Request{})
	compare()
	w.connect("10.244.1.6:8080", 0)
	compare()
	w.change(webWith(func(s *model.Service) { s.ClusterIPs[0] = netip.MustParseAddr("10.96.0.11") }, 5))
	compare(
		"ipvsadm -A -t 10.96.0.11:80 -s rr", "ipvsadm -a -t 10.96.0.11:80 -r 10.244.1.5:8080 -m -w 1",
		"ip address add 10.96.0.11/32 dev kube-ipvs0", "ipvsadm -e -t 10.96.0.10:80 -r 10.244.1.5:8080 -m -w 0",
	)
}
