package flow

import (
	"fmt"
	"slices"
	"sync"

	"sluice/internal/plan"
)

// Way answers what becomes of packets on one node.
type Way interface {
	// Name is that of the column in a test's output.
	Name() string
	// Follow brings the way up to date with the plan after changes. The first call hands over everything.
	Follow(*plan.Plan, plan.Changes) error
	// Ask finds out what becomes of a flow's packet. Flow.Want is only a hint of how long to try.
	Ask(Flow) (Outcome, error)
}

// Check asks w and returns an error unless the answer is what the flow wants.
func Check(w Way, f Flow) error {
	got, err := w.Ask(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	if !got.Equal(f.Want) {
		return fmt.Errorf("%s\n\tgot: %s", f, got)
	}
	return nil
}

// CheckAll is Check for each flow, in their order, and returns what is wrong. Silence takes its time: what is to be lost is
// asked beside the others, if w can do that.
func CheckAll(w Way, flows []Flow) (wrong []error) {
	errs := make([]error, len(flows))
	var silent sync.WaitGroup
	for i, f := range flows {
		ask := func() { errs[i] = Check(w, f) }
		if s, ok := w.(sideBySide); ok && s.mayBeside(f) {
			silent.Go(ask)
		} else {
			ask()
		}
	}
	silent.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// sideBySide is a Way that can be asked several flows at once.
type sideBySide interface {
	// mayBeside reports whether a flow can be asked while others are.
	mayBeside(Flow) bool
}

// ByPlan answers from the plan, which is the oracle of all others.
func ByPlan() Way { return &byPlan{} }

type byPlan struct{ plan *plan.Plan }

func (w *byPlan) Name() string { return "plan" }

func (w *byPlan) Follow(p *plan.Plan, _ plan.Changes) error {
	w.plan = p
	return nil
}

func (w *byPlan) Ask(f Flow) (Outcome, error) { return Decide(w.plan, f.Packet), nil }

// Decide is the plan's decision as an Outcome.
func Decide(p *plan.Plan, pkt plan.Packet) Outcome {
	d := p.Decide(pkt)
	var targets []Target
	for _, t := range d.Targets {
		targets = append(targets, Target{t.AddrPort, t.Masquerade, t.Share})
	}
	return NewOutcome(d.Action, targets...)
}
