// Package reconcile is the loop that keeps the kernel as the plan says.
//
//	source, host ──Event──▶ plan.Planner ──▶ backend.Ruleset ──▶ Backend.Apply, then stale UDP entries
//
// It owns the clock: it gathers changes, paces the writes, retries what failed and has the kernel read back now and
// then. It knows no concrete backend and no concrete source. It is level-triggered: what an Apply did not achieve, the
// next one does, so nothing is lost by a failure. It never removes rules when it starts or stops.
package reconcile
