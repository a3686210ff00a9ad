package backend

import "sluice/internal/plan"

// Leader is a Ruleset that leads connections elsewhere than to the plan's endpoints: to a proxy of its own, say.
type Leader interface {
	// Leads is the plan whose endpoints the kernel leads to, with the frontends and policies of the one that was compiled,
	// and which of its Service ports changed since the last call.
	Leads() (*plan.Plan, plan.Changes)
}
