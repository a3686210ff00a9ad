package flow

import (
	"testing"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// The network tells a client but a few times, one after the other, that it does not take a packet. What it does not tell
// is not taken for lost.
func TestMoreUnhandledThanTheNetworkTells(t *testing.T) {
	nstest.Require(t)
	l, err := lab.Up(lab.Reference())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	way := ByPackets(l, lab.Reference(), func(*plan.Plan, plan.Changes) error { return nil })
	if err := way.Follow(plan.Build(plan.Config{}, plan.Host{}, model.NewSnapshot()), plan.Changes{}); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("pod 10.244.1.50 -> 10.96.0.1:80/UDP: unhandled")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		if err := Check(way, f); err != nil {
			t.Errorf("number %d: %v", i, err)
		}
	}
}

// An endpoint that gets a small share is met, too.
func TestTries(t *testing.T) {
	for want, shares := range map[int][]float64{40: nil, 80: {0.5, 0.5}, 200: {0.8, 0.2}} {
		var targets []Target
		for _, s := range shares {
			targets = append(targets, Target{Share: s})
		}
		if got := tries(targets); got != want {
			t.Errorf("shares %v: %d tries, want %d", shares, got, want)
		}
	}
}
