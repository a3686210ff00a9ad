package nftables

import (
	"net/netip"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
)

// upLab builds the reference lab, whose pods answer at port 8080.
func upLab(t testing.TB) *lab.Lab {
	t.Helper()
	nstest.Require(t)
	l, err := lab.Up(lab.Reference())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := l.Host("pods-a").ServeAll(model.TCP, 8080); err != nil {
		t.Fatal(err)
	}
	return l
}

// applyAt applies the rules of a rig on a machine of a lab.
func applyAt(t testing.TB, h *lab.Host, b *Backend, w *rig) (result backend.Result) {
	t.Helper()
	err := h.Do(func() (err error) {
		result, err = b.Apply(t.Context(), w.rules, backend.Request{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// spread tells how many of n connections of a pod to Service number i each endpoint got.
func spread(t testing.TB, l *lab.Lab, i, n int) lab.Tally {
	t.Helper()
	tally, err := l.Host("pods-a").Spread(lab.Dial{
		From: netip.MustParseAddr("10.244.1.50"), To: netip.AddrPortFrom(clusterIP(i), 80), Protocol: model.TCP,
	}, n)
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

func TestPackets(t *testing.T) {
	l := upLab(t)
	w := newRig(t, service(1, 5, 6), service(2))
	b := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), b, w)
	if got := spread(t, l, 1, 40); got.Forwarded() != 40 || len(got.Endpoints) != 2 {
		t.Errorf("two endpoints: %+v", got)
	}
	if got := spread(t, l, 2, 1); got.Failed[plan.Reject] != 1 {
		t.Errorf("no endpoints: %+v", got)
	}
	w.change(service(2, 7))
	w.change(service(1, 6))
	applyAt(t, l.Node(), b, w)
	for i, want := range map[int]string{1: "10.244.1.6:8080", 2: "10.244.1.7:8080"} {
		if got := spread(t, l, i, 10); got.Endpoints[netip.MustParseAddrPort(want)] != 10 {
			t.Errorf("Service %d: %+v, want all at %s", i, got, want)
		}
	}
}
