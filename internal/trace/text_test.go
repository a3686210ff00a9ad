package trace

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteText(t *testing.T) {
	r := Result{
		Verdict:      Forward,
		Endpoints:    []Endpoint{{netip.MustParseAddrPort("10.1.0.2:80"), 0.75, true}},
		Steps:        []Step{{"filter FORWARD", "-j DROP", "dropped"}, {"nat OUTPUT", "", "… and 3 more"}},
		Alternatives: []Alternative{{Verdict: Drop, Probability: 0.25}},
		Warnings:     []string{"unknown target X, assumed to continue"},
		Error:        "chain A leads back to itself",
	}
	const want = `forward: the connection goes to 1 endpoint

  ENDPOINT     SHARE  SEES
  10.1.0.2:80  75 %   this node
  in 25 % of all cases drop

note: unknown target X, assumed to continue

  1  filter FORWARD
     dropped
       -j DROP
  2  nat OUTPUT
     … and 3 more

fault in the rules: chain A leads back to itself
`
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestUncertainText(t *testing.T) {
	to := []Endpoint{{Address: netip.MustParseAddrPort("[fd00::1]:80")}, {Address: netip.MustParseAddrPort("[fd00::2]:80")}}
	r := Result{Verdict: Drop, Uncertain: true, Alternatives: []Alternative{{Verdict: Forward, Endpoints: to}}}
	const want = `drop: the connection is dropped without a word (not certain: see the steps marked with a question)
  or forward to [fd00::1]:80, [fd00::2]:80
`
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// What others have in the kernel leaves doubt, if the packet comes there and it may do something. The shares that rules
// give are told as they are.
func TestMeet(t *testing.T) {
	r := Result{Verdict: Unhandled, Alternatives: []Alternative{{Verdict: Drop, Probability: 0.25}}, Hooks: Hooks{"prerouting", "forward"}}
	idle := []Chain{{"ip filter", "FORWARD", "forward", "accept", 0}, {"ip filter", "INPUT", "input", "drop", 3}}
	if r.Meet(idle); r.Uncertain || r.NotFollowed != nil {
		t.Errorf("chains that do nothing to it: %+v", r)
	}
	r.Meet([]Chain{{"ip filter", "FORWARD", "forward", "drop", 0}, {"ip kube-proxy", "nat", "prerouting", "accept", 1}, {"ip filter", "FIRST", "prerouting", "accept", 2}})
	const want = `unhandled: no rule translates or refuses it; it goes where routing takes it, as far as rules are followed here (not certain: see the notes)
  in 25 % of all cases drop

note: the packet also passes table ip filter, which is not followed here and may do anything with it: chain FORWARD (hook forward, policy drop, 0 rules), FIRST (hook prerouting, policy accept, 2 rules)

note: the packet also passes table ip kube-proxy, which is not followed here and may do anything with it: chain nat (hook prerouting, policy accept, 1 rule)
`
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if !r.Uncertain {
		t.Error("it is certain")
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100 %", 0.2: "20 %", 1.0 / 3: "33.3 %", 0.0002: "0.0200 %", 0: "0.0000 %"} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%g) = %s, want %s", share, got, want)
		}
	}
}

func TestSortEndpoints(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.9:80"), netip.MustParseAddrPort("10.0.0.10:80")
	list := []Endpoint{{b, 0, false}, {a, 0, true}, {a, 0, false}}
	SortEndpoints(list)
	want := []Endpoint{{a, 0, false}, {a, 0, true}, {b, 0, false}}
	if diff := cmp.Diff(want, list, cmp.Comparer(func(x, y netip.AddrPort) bool { return x == y })); diff != "" {
		t.Error(diff)
	}
}
