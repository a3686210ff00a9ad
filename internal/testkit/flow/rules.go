package flow

import (
	"errors"
	"fmt"

	"sluice/internal/backend"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// Compile makes the rules of a mode, without a kernel.
type Compile func(*plan.Plan) backend.Ruleset

// ByRules answers with a walk over compiled rules.
func ByRules(mode string, compile Compile) Way { return &byRules{mode: mode, compile: compile} }

type byRules struct {
	mode    string
	compile Compile
	ruleset backend.Ruleset
}

func (w *byRules) Name() string { return w.mode }

func (w *byRules) Follow(p *plan.Plan, c plan.Changes) error {
	if w.ruleset == nil {
		w.ruleset = w.compile(p)
	} else {
		w.ruleset.Update(p, c)
	}
	return nil
}

func (w *byRules) Ask(f Flow) (Outcome, error) { return Walked(w.ruleset.Trace(f.Packet)) }

// Walked is a walker's Result as an Outcome. A Result that leaves a choice open is an error.
func Walked(r trace.Result) (o Outcome, err error) {
	switch {
	case r.Error != "":
		return o, errors.New(r.Error)
	case r.Uncertain:
		return o, errors.New("the walk is uncertain")
	case len(r.Alternatives) > 0:
		return o, fmt.Errorf("the walk has other verdicts by chance: %v", r.Alternatives)
	}
	if o.Action, err = parseAction(string(r.Verdict)); err != nil {
		return o, err
	}
	var targets []Target
	for _, e := range r.Endpoints {
		targets = append(targets, Target{e.Address, e.Masquerade, e.Probability})
	}
	return NewOutcome(o.Action, targets...), nil
}
