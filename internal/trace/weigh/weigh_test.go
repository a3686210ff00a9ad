package weigh

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/trace"
)

// A flow keeps each state once and loses nothing, however large it gets and however it is cut and changed.
func TestFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Flow[int]
		want := map[int]float64{}
		for range rapid.IntRange(0, 60).Draw(t, "parts") {
			s, share := rapid.IntRange(0, 30).Draw(t, "state"), rapid.Float64Range(-1, 1).Draw(t, "share")
			f.Add(s, share)
			if share > 0 {
				want[s] += share
			}
		}
		check(t, f, want)
		even, odd := f.Divide(func(s int) bool { return s%2 == 0 })
		for _, p := range even.Parts() {
			if p.State%2 != 0 {
				t.Fatalf("%d is among the even", p.State)
			}
		}
		odd.AddAll(even)
		check(t, odd, want)
		halves := map[int]float64{}
		for s, share := range want {
			halves[s/2] += share
		}
		check(t, f.Each(func(s int) int { return s / 2 }), halves)
	})
}

func check(t *rapid.T, f Flow[int], want map[int]float64) {
	var sum float64
	for _, p := range f.Parts() {
		if math.Abs(p.Share-want[p.State]) > 1e-9 {
			t.Fatalf("state %d has %g, want %g", p.State, p.Share, want[p.State])
		}
		sum += p.Share
	}
	if len(f.Parts()) != len(want) || f.Empty() != (len(want) == 0) || math.Abs(sum-f.Total()) > 1e-9 {
		t.Fatalf("%d parts for %g in all, want %d", len(f.Parts()), f.Total(), len(want))
	}
}

func TestVerdictsAreByShare(t *testing.T) {
	e := Ends{Untouched: 1e-15, Rejected: 0.25, Dropped: 0.75}
	r := Result(e.Verdicts())
	if r.Verdict != trace.Drop || len(r.Alternatives) != 1 || r.Alternatives[0].Verdict != trace.Reject || r.Endpoints == nil {
		t.Errorf("%+v", r)
	}
}

func TestDoubtLeavesSharesWithinAVerdict(t *testing.T) {
	all := Ends{Translated: Flow[Arrival]{parts: []Part[Arrival]{{Arrival{Masquerade: true}, 0.2}, {Arrival{}, 0.2}}}, Dropped: 0.6}.Verdicts()
	Doubt(all)
	r := Result(all)
	forward := r.Alternatives[0]
	if r.Verdict != trace.Drop || forward.Probability != 0 || forward.Endpoints[0].Probability != 0.5 || forward.Endpoints[0].Masquerade {
		t.Errorf("%+v", r)
	}
}
