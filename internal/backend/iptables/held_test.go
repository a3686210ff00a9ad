package iptables

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/testkit/sample"
)

// TestHiddenUserOfChainHoldsUpNothing: a chain that cannot be removed is emptied, everything else is done, and it goes
// when it can.
func TestHiddenUserOfChainHoldsUpNothing(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		b, fakes := newTestBackend(legacy)
		if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil {
			t.Fatal(err)
		}
		svc := slices.Sorted(maps.Keys(fakes[0].contents[Nat]))
		chain := svc[slices.IndexFunc(svc, func(name string) bool { return strings.HasPrefix(name, "KUBE-SVC-") })]
		fakes[0].hidden = chain
		s, _ := sample.Service(model.IPv4, []string{"10.96.0.10"})
		gone := Compile(planOf(s), DefaultOptions())
		for round := range 3 {
			result, err := b.Apply(t.Context(), gone, backend.Request{Recheck: true})
			if err != nil || (result.Written == 0) != (round > 0) {
				t.Fatalf("legacy %t, round %d: %+v, %v", legacy, round, result, err)
			}
		}
		want := gone.families[0].chains.clone()
		want[Nat][chain] = ""
		if diff := cmp.Diff(want, ownOf(fakes[0].contents)); diff != "" {
			t.Errorf("legacy %t: (-want +got):\n%s", legacy, diff)
		}
		fakes[0].hidden = ""
		*fakes[0].generation++
		if _, err := b.Apply(t.Context(), gone, backend.Request{Recheck: true}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(gone.families[0].chains, ownOf(fakes[0].contents)); diff != "" {
			t.Errorf("legacy %t: when it can go (-want +got):\n%s", legacy, diff)
		}
	}
}

func ownOf(all contents) contents {
	ours := all.clone()
	for _, table := range tables {
		maps.DeleteFunc(ours[table], func(name, _ string) bool { return !own(table, name) })
	}
	return ours
}

// TestCleanupLeavesWhatOthersUse: a chain stays if rules of others lead to it, seen or not, and that is told.
func TestCleanupLeavesWhatOthersUse(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		b, fakes := newTestBackend(legacy)
		if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil {
			t.Fatal(err)
		}
		fakes[0].contents[Nat]["MINE"] = "-A MINE -j KUBE-MARK-MASQ\n"
		fakes[0].hidden = chainNodePorts
		for range 2 {
			err := b.Cleanup(t.Context())
			const want = "clean up IPv4: rules of others lead to these chains, which stay, emptied: filter KUBE-NODEPORTS, nat KUBE-MARK-MASQ, nat KUBE-NODEPORTS"
			if err == nil || err.Error() != want {
				t.Errorf("legacy %t: error is %v", legacy, err)
			}
		}
		if got := ownCount(fakes[0].contents); got != 3 {
			t.Errorf("legacy %t: %d chains are left", legacy, got)
		}
		fakes[0].contents[Nat]["MINE"], fakes[0].hidden = "", ""
		if err := b.Cleanup(t.Context()); err != nil || ownCount(fakes[0].contents) > 0 {
			t.Errorf("legacy %t: with nothing in the way, error is %v", legacy, err)
		}
	}
}

// TestCleanupOfReadOnlySettingLeavesGuardAlone: what guards loopback addresses stays as long as packets to them are
// routed; all else goes.
func TestCleanupOfReadOnlySettingLeavesGuardAlone(t *testing.T) {
	b, fakes := newTestBackend(false)
	if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil {
		t.Fatal(err)
	}
	readOnly := errors.New("/proc/sys is read-only here")
	b.deps.RouteLocalnet = func(bool) error { return readOnly }
	if err := b.Cleanup(t.Context()); !errors.Is(err, readOnly) {
		t.Errorf("error is %v", err)
	}
	_, guarded := fakes[0].contents[Filter][chainFirewall]
	if n := ownCount(fakes[0].contents); n > 0 || !guarded {
		t.Errorf("%d chains are left, and the guard is there: %t", n, guarded)
	}
}
