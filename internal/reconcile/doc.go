// Package reconcile is the loop that keeps the kernel as the plan says.
//
//	source, host ──Event──▶ plan.Planner ──▶ backend.Ruleset ──▶ Backend.Apply, then stale UDP entries
//
// It owns the clock: it gathers changes, paces the writes, retries what failed, repairs what others did as soon as the
// kernel tells of it, and has the kernel read back now and then. It knows no concrete backend and no concrete source. It
// is level-triggered: what an Apply did not achieve, the next one does, so nothing is lost by a failure. It never removes
// rules when it starts or stops.
//
// Nobody waits for somebody else: a Service port that the kernel refuses has its own back-off ([refusals]), a burst of
// changes takes a fifth of the kernel's time ([pace]), and so does a stranger who undoes our work ([fight]). What a change
// costs here is what changed, however many Services there are.
package reconcile
