package nftwalk

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/nft"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace"
)

// Whatever the rules, what goes in comes out somewhere, and no chain that leads back keeps the walk.
func TestNothingIsLost(t *testing.T) {
	seen := map[trace.Verdict]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range tables {
			w := &walker{rules: drawn(t), pkt: packet("10.1.1.1", "10.9.9.9:80"), host: host}
			w.run()
			if sum := w.left.Total() + w.rejected + w.dropped; math.Abs(sum-1) > 1e-9 {
				t.Fatalf("shares come to %g: %s", sum, oracle.Short(w.result()))
			}
			seen[w.result().Verdict]++
		}
	})
	for _, v := range []trace.Verdict{trace.Forward, trace.Unhandled, trace.Reject, trace.Drop} {
		if seen[v] == 0 {
			t.Errorf("no rules led to %s", v)
		}
	}
}

// tables are so many in each of rapid's calls, of which there are few in a short test, that every verdict comes up.
const tables = 50

func drawn(t *rapid.T) *table {
	rs := world()
	for _, chain := range []string{"pre", "here", "other", "post", "forward"} {
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			rs.rule(chain, rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 3).Draw(t, "statements")...)
		}
	}
	return rs.rule("here", isV4).rule("other", isV4)
}

var vocabulary = []nft.Statement{
	isTCP, isV4, isUDP, priority1, setPriority(2), priorityIs(1), toEndpoint, accept, drop, back,
	nft.Reject{},
	nft.Masquerade{},
	jump("here"), goTo("here"), jump("other"), goTo("other"),
	nft.Is{Left: nft.Numgen{Mod: 3}, Right: nft.Value{}.Uint32(1)},
	nft.Is{Left: nft.THSport, Right: nft.Value{}.Port(9)},
	nft.In{Left: nft.IPDaddr, Set: "one"},
	nft.In{Left: nft.IPSaddr, Set: "memory", Not: true},
	nft.Vmap{Key: nft.Priority, Map: "ways"},
	nft.DNAT{To: nft.Lookup{Key: nft.Concat{nft.Priority, nft.Numgen{Mod: 3}}, Map: "slots"}},
}
