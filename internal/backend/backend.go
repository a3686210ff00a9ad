package backend

import (
	"context"
	"io"

	"sluice/internal/plan"
	"sluice/internal/trace"
)

// Backend is one mode: a way in which the kernel can do a Service proxy's work.
type Backend interface {
	// Name is the value of --mode.
	Name() string
	// Compile turns a Plan into this mode's objects. It is pure.
	Compile(*plan.Plan) Ruleset
	// Apply makes the kernel hold what r says: it compares and writes the difference, so that it may be repeated, and
	// a failed one loses nothing. It notices what others changed wherever the kernel lets it do so cheaply; with
	// recheck it reads back everything. An error may concern one family alone; the other is applied all the same.
	Apply(ctx context.Context, r Ruleset, recheck bool) (Result, error)
	// Cleanup removes every trace of this mode. What is not there is no error.
	Cleanup(context.Context) error
}

// Ruleset is a compiled Plan.
type Ruleset interface {
	// Update brings it up to date with the Plan after changes. The outcome is that of compiling anew, for less.
	Update(*plan.Plan, plan.Changes)
	// Render writes it as text that the mode's own tool accepts.
	Render(io.Writer) error
	// Trace walks a new connection's first packet through it.
	Trace(plan.Packet) trace.Result
}

// Result is what an Apply did.
type Result struct {
	// Written is the number of objects (chains, elements) that were added, changed or removed; 0 says that the kernel
	// was as it should be.
	Written int
	// Restored are objects that Sluice had written before and somebody else changed or removed.
	Restored []string
	// Former are the frontends that rules found in the kernel served and r does not: of Services that went while
	// nobody watched, say. They are told by the first Apply of a process, which is the first to read the kernel.
	Former []plan.Key
}
