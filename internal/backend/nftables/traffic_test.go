package nftables

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// watchAt has a Backend listen on a machine of a lab until the test ends.
func watchAt(t *testing.T, h *lab.Host, b *Backend) *watched {
	t.Helper()
	w := &watched{b, make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- h.Do(func() error { return b.Watch(ctx, w.tell) })
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

// patience is how long a connection may take. Where a rule is missing the network refuses at once, and a packet that was
// dropped is sent again, which is counted.
const patience = 30 * time.Second

// loadOn opens connections to Service number i until the test ends, one after the other. Each Service has a client of its
// own: two that came by the same port to the same endpoint at once would be one too many for connection tracking.
func loadOn(l *lab.Lab, i byte) *lab.Load {
	return l.Host("pods-a").Load(lab.Dial{
		From: netip.AddrFrom4([4]byte{10, 244, 1, 50 + i}), To: netip.AddrPortFrom(clusterIP(int(i)), 80), Protocol: model.TCP,
		Timeout: patience,
	}, time.Millisecond)
}

// repeated is how often clients have sent a connection's first packet again.
func repeated(t *testing.T, l *lab.Lab) int {
	t.Helper()
	n, err := l.Host("pods-a").Repeated()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever others do, and whenever, connections succeed again once it is repaired, and open ones go on: unless the whole
// table goes, and with it what has the kernel track connections, so that a segment may be reset before it is back.
func TestDriftUnderTraffic(t *testing.T) {
	l := upLab(t)
	w := newRig(t, service(1, 5, 6, 7), service(2), service(3, 5))
	b := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), b, w)
	watched := watchAt(t, l.Node(), b)
	connect := func() *lab.Conn {
		c, _, err := l.Host("pods-a").Connect(lab.Dial{To: netip.AddrPortFrom(clusterIP(3), 80), Protocol: model.TCP})
		if err != nil || c == nil {
			t.Fatal(err)
		}
		return c
	}
	open := connect()
	defer func() { _ = open.Close() }()
	load := loadOn(l, 1)
	for _, i := range rand.Perm(len(drifts)) {
		d := drifts[i]
		watched.forget()
		cmd := l.Node().Command(t.Context(), "nft", d.nft)
		succeed(t, cmd)
		since := time.Now()
		watched.wait(t)
		applyAt(t, l.Node(), b, w)
		t.Logf("%s: repaired after %v", d.name, time.Since(since).Round(10*time.Microsecond))
		if got := spread(t, l, 1, 10); got.Forwarded() != 10 {
			t.Errorf("%s: %+v", d.name, got)
		}
		switch err := open.Echo("still there?"); {
		case err == nil:
		case d.want != "table inet sluice":
			t.Errorf("%s: %v", d.name, err)
		default:
			_ = open.Close()
			open = connect()
		}
	}
	if tally, err := load.Stop(); err != nil || tally.Forwarded() == 0 {
		t.Errorf("%+v, error %v", tally, err)
	} else {
		t.Logf("%d connections, %d of them while something was amiss: %v", tally.Total, tally.Total-tally.Forwarded(), tally.Failed)
	}
}

// A Service that does not change loses no connection while others do, lists shrink and grow, and the table is replaced.
func TestChangesUnderTraffic(t *testing.T) {
	l := upLab(t)
	w := newRig(t, service(1, 5, 6, 7), service(2, 5))
	b := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), b, w)
	before := repeated(t, l)
	stable, shrinking := loadOn(l, 1), loadOn(l, 2)
	for round := range 300 {
		var ends []byte
		for e := range 1 + rand.IntN(12) {
			ends = append(ends, byte(5+e))
		}
		w.change(service(2, ends...))
		switch i := 3 + rand.IntN(5); rand.IntN(3) {
		case 0:
			w.change(gone(i))
		case 1:
			w.change(service(i, ends...))
		default:
			w.change(serviceWith(i, addrsOf("10.244.1.20", "10.244.1.21"), func(s *model.Service) { s.Affinity = time.Hour }))
		}
		w.rules.dirty.table = round%20 == 0
		applyAt(t, l.Node(), b, w)
	}
	for name, load := range map[string]*lab.Load{"the Service that stays": stable, "the one that changes": shrinking} {
		tally, err := load.Stop()
		if err != nil || tally.Forwarded() != tally.Total || tally.Total == 0 {
			t.Errorf("%s: %d connections, failed %v, error %v; the first: %v", name, tally.Total, tally.Failed, err, tally.Failures)
		}
	}
	if n := repeated(t, l) - before; n > 0 {
		t.Errorf("%d connections had to send their first packet again", n)
	}
}
