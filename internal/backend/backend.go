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
	// a failed one loses nothing. It notices what others changed wherever the kernel lets it do so cheaply. An error may
	// concern one family alone; the other is applied all the same. A Service port that the kernel refuses is no error
	// but one of Result.Refused, and everything else is written.
	Apply(ctx context.Context, r Ruleset, req Request) (Result, error)
	// Cleanup removes every trace of this mode. What is not there is no error.
	Cleanup(context.Context) error
}

// Watcher is a Backend whose kernel tells of what others do.
type Watcher interface {
	// Watch calls changed whenever somebody else changed what is ours, or may have; the next Apply finds out what it
	// was. It does so first when it begins to listen, since what happened before goes unseen. It works until ctx ends or
	// it fails; where the kernel cannot tell, it returns nil at once.
	Watch(ctx context.Context, changed func()) error
}

// Request says how an Apply is to go about it.
type Request struct {
	// Recheck has it read back everything that the kernel holds and trust nothing that is remembered.
	Recheck bool
	// Hold are Service ports that the kernel refused a moment ago. They are left in it as they are, and tried again
	// once they are not in here any more.
	Hold map[plan.PortID]bool
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
	// Refused are the Service ports that the kernel did not take, each with an error that names it and has the kernel's
	// words, and those that the mode itself does not take, each with a [*Declined]. They are in the kernel as they were
	// before, or not at all. Those of Request.Hold are not among them.
	Refused map[plan.PortID]error
	// Former are the frontends that rules found in the kernel served and r does not: of Services that went while
	// nobody watched, say. They are told by the first Apply of a process, which is the first to read the kernel.
	Former []plan.Key
	// Phases is what the time went into.
	Phases Phases
}

// Refuse notes a Service port that was not taken.
func (r *Result) Refuse(port plan.PortID, why error) {
	if r.Refused == nil {
		r.Refused = map[plan.PortID]error{}
	}
	r.Refused[port] = why
}
