package flow

import (
	"errors"
	"fmt"

	"sluice/internal/backend"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// ByRules answers with a walk over the rules that b compiles.
func ByRules(b backend.Backend) Way { return &byRules{backend: b} }

type byRules struct {
	backend backend.Backend
	ruleset backend.Ruleset
}

func (w *byRules) Name() string { return w.backend.Name() }

func (w *byRules) Follow(p *plan.Plan, c plan.Changes) error {
	if w.ruleset == nil {
		w.ruleset = w.backend.Compile(p)
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
