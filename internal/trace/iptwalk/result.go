package iptwalk

import (
	"slices"

	"sluice/internal/trace"
	"sluice/internal/trace/weigh"
)

// result gathers the ends of all packets into one answer: the verdict that most of them get, and the others.
func (w *walker) result() trace.Result {
	r := weigh.Result(w.verdicts())
	r.Steps = append(r.Steps, w.steps...)
	r.Warnings = w.notes()
	r.Error, r.Hooks = w.fault, w.hooks
	return r
}

func (w *walker) verdicts() []trace.Alternative {
	ends := weigh.Ends{Rejected: w.rejected, Dropped: w.dropped}
	for _, p := range w.left.Parts() {
		if p.State.dnat {
			ends.Translated.Add(weigh.Arrival{At: p.State.dst, Masquerade: p.State.snat}, p.Share)
		} else {
			ends.Untouched += p.Share
		}
	}
	return ends.Verdicts()
}

func (w *walker) notes() []string {
	if w.askedInterface {
		w.warn(weigh.AskedInterface)
	}
	if w.askedHistory {
		w.warn(weigh.AskedHistory)
	}
	return w.warnings
}

// withDoubt makes the answer of a walk that met what is not known: r, in which such matches pass half of the packets,
// is compared with plain, in which they pass none. Where both come to the same, nothing depends on them.
func (w *walker) withDoubt(r, plain trace.Result) trace.Result {
	if !w.assumed && same(r, plain) {
		return r
	}
	all := append([]trace.Alternative{{Verdict: r.Verdict, Endpoints: r.Endpoints}}, r.Alternatives...)
	if i := slices.IndexFunc(all, func(a trace.Alternative) bool { return a.Verdict == plain.Verdict }); i > 0 && tied(w, all[i].Probability) {
		all[0], all[i] = all[i], all[0]
	}
	weigh.Doubt(all)
	d := weigh.Result(all)
	d.Uncertain, d.Steps, d.Warnings, d.Error, d.Hooks = true, r.Steps, r.Warnings, r.Error, r.Hooks
	return d
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
