package weigh

import (
	"cmp"
	"net/netip"
	"slices"

	"sluice/internal/trace"
)

// What a walk warns of, whatever the language of the rules.
const (
	AskedInterface = "the interface that the packet comes in by was not given, so rules that name one are taken not to mean it"
	AskedHistory   = "the answer is for a client without an earlier connection; one that has session affinity keeps its endpoint"
)

// Arrival is where a packet comes to, and whether its source was rewritten on the way.
type Arrival struct {
	At         netip.AddrPort
	Masquerade bool
}

// Ends are the shares of what becomes of all packets.
type Ends struct {
	Translated                   Flow[Arrival]
	Untouched, Rejected, Dropped float64
}

// dust is the share below which a verdict is a rounding error: a probability of the kernel is a multiple of 2^-31.
const dust = 1e-12

// Verdicts are what can become of a packet, the likeliest first.
func (e Ends) Verdicts() []trace.Alternative {
	all := []trace.Alternative{
		{Verdict: trace.Forward, Probability: e.Translated.Total(), Endpoints: endpoints(e.Translated)},
		{Verdict: trace.Unhandled, Probability: e.Untouched},
		{Verdict: trace.Reject, Probability: e.Rejected},
		{Verdict: trace.Drop, Probability: e.Dropped},
	}
	slices.SortStableFunc(all, func(a, b trace.Alternative) int { return cmp.Compare(b.Probability, a.Probability) })
	for len(all) > 1 && all[len(all)-1].Probability < dust {
		all = all[:len(all)-1]
	}
	return all
}

func endpoints(f Flow[Arrival]) (list []trace.Endpoint) {
	for _, p := range f.parts {
		list = append(list, trace.Endpoint{Address: p.State.At, Probability: p.Share, Masquerade: p.State.Masquerade})
	}
	trace.SortEndpoints(list)
	return list
}

// Result is the answer that begins with the likeliest verdict and has no steps.
func Result(verdicts []trace.Alternative) trace.Result {
	r := trace.Result{
		Verdict: verdicts[0].Verdict, Endpoints: verdicts[0].Endpoints, Alternatives: verdicts[1:],
		Steps: []trace.Step{},
	}
	if r.Endpoints == nil {
		r.Endpoints = []trace.Endpoint{}
	}
	return r
}

// Doubt takes away the shares of verdicts, for nobody knows them. Those of endpoints become shares within a verdict.
func Doubt(verdicts []trace.Alternative) {
	for i := range verdicts {
		verdicts[i].Probability = 0
		var sum float64
		for _, e := range verdicts[i].Endpoints {
			sum += e.Probability
		}
		for j := range verdicts[i].Endpoints {
			verdicts[i].Endpoints[j].Probability /= sum
		}
	}
}
