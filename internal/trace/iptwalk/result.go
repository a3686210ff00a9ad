package iptwalk

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"sluice/internal/trace"
)

// result gathers the ends of all packets into one answer: the verdict that most of them get, and the others.
func (w *walker) result() trace.Result {
	all := w.verdicts()
	r := trace.Result{
		Verdict:      all[0].Verdict,
		Endpoints:    []trace.Endpoint{},
		Steps:        append([]trace.Step{}, w.steps...),
		Alternatives: all[1:],
		Warnings:     w.notes(),
		Error:        w.fault,
	}
	if e := all[0].Endpoints; e != nil {
		r.Endpoints = e
	}
	return r
}

// dust is the share below which a verdict is a rounding error: a probability of the kernel is a multiple of 2^-31.
const dust = 1e-12

// verdicts are what can become of the packet, the likeliest first.
func (w *walker) verdicts() []trace.Alternative {
	translated, untouched := w.left.divide(func(s state) bool { return s.dnat })
	all := []trace.Alternative{
		{Verdict: trace.Forward, Probability: translated.total(), Endpoints: endpoints(translated)},
		{Verdict: trace.Unhandled, Probability: untouched.total()},
		{Verdict: trace.Reject, Probability: w.rejected},
		{Verdict: trace.Drop, Probability: w.dropped},
	}
	slices.SortStableFunc(all, func(a, b trace.Alternative) int { return cmp.Compare(b.Probability, a.Probability) })
	for len(all) > 1 && all[len(all)-1].Probability < dust {
		all = all[:len(all)-1]
	}
	return all
}

func endpoints(f flow) []trace.Endpoint {
	type key struct {
		address    netip.AddrPort
		masquerade bool
	}
	shares := map[key]float64{}
	for _, p := range f.parts {
		shares[key{p.dst, p.snat}] += p.share
	}
	var list []trace.Endpoint
	for k := range maps.Keys(shares) {
		list = append(list, trace.Endpoint{Address: k.address, Probability: shares[k], Masquerade: k.masquerade})
	}
	trace.SortEndpoints(list)
	return list
}

func (w *walker) notes() []string {
	if w.askedInterface {
		w.warn("the interface that the packet comes in by was not given, so rules that name one are taken not to mean it")
	}
	if w.askedHistory {
		w.warn("the answer is for a client without an earlier connection; one that has session affinity keeps its endpoint")
	}
	return w.warnings
}

// withDoubt makes the answer of a walk that met what is not known: r, in which such matches pass half of the packets,
// is compared with plain, in which they pass none. Where both come to the same, nothing depends on them.
func (w *walker) withDoubt(r, plain trace.Result) trace.Result {
	if !w.assumed && same(r, plain) {
		return r
	}
	r.Uncertain = true
	all := append([]trace.Alternative{{Verdict: r.Verdict, Endpoints: r.Endpoints}}, r.Alternatives...)
	if i := slices.IndexFunc(all, func(a trace.Alternative) bool { return a.Verdict == plain.Verdict }); i > 0 && tied(w, all[i].Probability) {
		all[0], all[i] = all[i], all[0]
	}
	for i := range all {
		all[i].Probability = 0
		scale(all[i].Endpoints)
	}
	r.Verdict, r.Alternatives = all[0].Verdict, all[1:]
	if r.Endpoints = all[0].Endpoints; r.Endpoints == nil {
		r.Endpoints = []trace.Endpoint{}
	}
	return r
}

// tied reports whether a share is as large as that of the likeliest verdict.
func tied(w *walker, share float64) bool { return share > w.verdicts()[0].Probability-1e-9 }

func same(a, b trace.Result) bool {
	return a.Verdict == b.Verdict && len(a.Alternatives) == len(b.Alternatives) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(x, y trace.Endpoint) bool {
			d := x.Probability - y.Probability
			return x.Address == y.Address && x.Masquerade == y.Masquerade && -1e-9 < d && d < 1e-9
		})
}

// scale makes shares within a verdict of shares of all, since the share of a verdict that nobody knows means nothing.
func scale(endpoints []trace.Endpoint) {
	var sum float64
	for _, e := range endpoints {
		sum += e.Probability
	}
	for i := range endpoints {
		endpoints[i].Probability /= sum
	}
}
