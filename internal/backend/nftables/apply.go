package nftables

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"sluice/internal/backend"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/plan"
)

// Backend is the nftables mode. It is safe for concurrent use.
type Backend struct {
	opts  Options
	deps  Deps
	drift drift

	counting counting

	mu       lock     // guards all following fields
	socket   Socket   // nil: not yet open
	listener Listener // nil: nobody listens
	// changed is how who listens asks for an Apply.
	changed func()
	// known is what the kernel has, nil if that was never read, and doubt why it may be otherwise. It was written for of.
	known *written
	doubt doubt
	of    *Ruleset
	begun bool // the kernel has had all that was wanted once
	// ours are our transactions since the generation drift counts from.
	ours uint32
	// localhost is set once RouteLocalnet has done so, until it is told otherwise.
	localhost bool

	counters counters

	batch *wire.Batch
	delta delta
	// writing is how long the kernel took for transactions since that was last looked at.
	writing time.Duration
}

// doubt is about whether the kernel has what it is known to have.
type doubt uint8

const (
	sure   doubt = iota
	shaken       // by ourselves: it is not known what became of a transaction
	others       // somebody else changed something
)

// Deps are the parts of the kernel that a Backend works with.
type Deps struct {
	// Open opens the socket; nil: nf_tables in the network namespace of the thread that calls first.
	Open func() (Socket, error)
	// Listen hears what is done by others than the socket of a number; nil: as Open.
	Listen func(ours uint32) (Listener, error)
	// RouteLocalnet has the kernel route packets from loopback addresses to elsewhere, which node ports on localhost
	// need, or no longer do so: then before the rules that guard loopback addresses go, which stay if it fails. It is
	// called again by the next Apply if it fails. Nil: that is somebody else's business.
	RouteLocalnet func(on bool) error
}

// New makes a Backend. It touches nothing.
func New(opts Options, deps Deps) *Backend {
	if deps.Open == nil {
		deps.Open = openSocket
	}
	if deps.Listen == nil {
		deps.Listen = listen
	}
	return &Backend{opts: opts, deps: deps, mu: newLock(), counting: counting{mu: newLock()}, batch: wire.NewBatch(tableName)}
}

// Name is the value of --mode.
func (b *Backend) Name() string { return "nftables" }

// Compile compiles a Plan.
func (b *Backend) Compile(p *plan.Plan) backend.Ruleset { return Compile(p, b.opts) }

// Apply makes the kernel's table hold what r says. See [backend.Backend].
//
// Transactions do not name the generation that they are meant for: one that others made obsolete by a change of our
// table fails by itself or is repaired as soon as they are heard of, and one that only met a change of another table
// need not fail.
func (b *Backend) Apply(ctx context.Context, r backend.Ruleset, req backend.Request) (result backend.Result, err error) {
	rs, ok := r.(*Ruleset)
	if !ok {
		return result, fmt.Errorf("apply: %T is not a ruleset of mode nftables", r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return result, err
	}
	a := &run{Backend: b, rules: rs, req: req, result: &result}
	defer b.shrink()
	err = a.apply(ctx)
	for id, err := range rs.problems {
		if !req.Hold[id] {
			a.refuse(id, err)
		}
	}
	return result, err
}

func (b *Backend) open() (err error) {
	if b.socket == nil {
		b.socket, err = b.deps.Open()
	}
	return err
}

const (
	// keepBatch is how many bytes a batch may have had, and keepElements how many elements a delta, to be kept for the
	// next one.
	keepBatch    = 256 << 10
	keepElements = 1 << 10
)

// shrink gives back the memory of what was large.
func (b *Backend) shrink() {
	if b.batch.Len() > keepBatch {
		b.batch = wire.NewBatch(tableName)
	}
	if b.delta.size() > keepElements {
		b.delta = delta{}
	}
}

// run is one Apply.
type run struct {
	*Backend
	rules  *Ruleset
	req    backend.Request
	result *backend.Result
	// fresh is set once the kernel was read: what it refuses from then on is no misunderstanding.
	fresh bool
	// blind is set if reading does not help, since others change something all the time.
	blind bool
	// apart is set once what is no port's is written, so that a refusal is about ports.
	apart bool
	// unrouted is why the kernel could not be told to route loopback addresses no longer.
	unrouted error
}

// apply looks again, and goes on, if the kernel turns out not to be as it was thought to be.
func (a *run) apply(ctx context.Context) error {
	for try := 1; ; try++ {
		a.blind = try > tries/2
		err := a.once(ctx)
		switch {
		case err == nil && (a.doubt == sure || try > 1):
			a.askToLook() // others may be at it all the time
			return a.routeLocalnet()
		case try == tries || err != nil && !isStale(err) && !isUnclear(err) && !isTooLarge(err):
			return err
		case isStale(err):
			a.doubt = others
		case err != nil:
			a.doubt = max(a.doubt, shaken)
		}
	}
}

func (a *run) once(ctx context.Context) error {
	find := a.look
	switch {
	case a.blind:
		// A table that nobody could read may have a guard.
		a.unrouteBefore(a.known == nil || a.known.structure.guardsLoopback())
		find = a.rewrite
	case a.known == nil || a.of != a.rules:
		find = a.begin // which finds out whether there is a guard
	default:
		a.unrouteBefore(a.known.structure.guardsLoopback())
	}
	a.writing = 0
	start := time.Now()
	err := find(ctx)
	start = a.spent(start, backend.Read)
	if err == nil {
		err = a.changes(ctx)
		a.spent(start, backend.Compare)
	}
	return err
}

// spent notes what the time since start went into, beside what the kernel took to write.
func (a *run) spent(start time.Time, phase backend.Phase) (now time.Time) {
	now = a.result.Phases.Since(start, phase)
	a.result.Phases[phase] -= a.writing
	a.result.Phases[backend.Write] += a.writing
	a.writing = 0
	return now
}

// commit has the kernel take the batch. The error names what it is about. An empty one would be no transaction, and must
// not be counted as one.
func (b *Backend) commit(ctx context.Context) error {
	if b.batch.Empty() {
		return nil
	}
	start := time.Now()
	err := b.socket.Commit(ctx, b.batch.Finish())
	b.writing += time.Since(start)
	switch {
	case err == nil:
		b.ours++
		return nil
	case !isRefusal(err):
		b.doubt = max(b.doubt, shaken)
	}
	return b.explain(err)
}

// explain names what a refusal is about.
func (b *Backend) explain(err error) error {
	refused, ok := errors.AsType[nfnl.Errors](err)
	if !ok {
		return fmt.Errorf("write table inet %s: %w", tableName, err)
	}
	what := b.batch.Subject(refused[0].Seq)
	if name, key, ok := b.batch.Element(refused[0].Seq, refused[0].Offset); ok {
		if set, ok := setNamed(name); ok {
			what = elementName(set, &nft.Element{Key: key})
		}
	}
	return fmt.Errorf("write %s of table inet %s: %w", what, tableName, err)
}

// isRefusal reports whether the kernel took offence at something in a batch, and left everything as it was.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[nfnl.Errors](err)
	return ok && refused[0].Seq != 0 || isTooLarge(err)
}

// busyChains are the chains that the kernel did not delete because something leads to them.
func busyChains(err error, b *wire.Batch) (names []string) {
	refused, _ := errors.AsType[nfnl.Errors](err)
	for _, e := range refused {
		if name, ok := strings.CutPrefix(b.Subject(e.Seq), "chain "); ok && errors.Is(e, syscall.EBUSY) {
			names = append(names, name)
		}
	}
	return names
}

// isStale reports whether a refusal may come of the kernel not having what it is known to have.
func isStale(err error) bool {
	return isRefusal(err) && (errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EEXIST) ||
		errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EBUSY))
}

// isTooLarge reports whether a batch was more than the socket takes, of which the kernel was not even told.
func isTooLarge(err error) bool { return errors.Is(err, nfnl.ErrTooLarge) }

// isUnclear reports whether it is worth a look what became of something.
func isUnclear(err error) bool {
	return errors.Is(err, nfnl.ErrUnanswered) || errors.Is(err, nfnl.ErrInterrupted)
}

// Close closes the sockets.
func (b *Backend) Close() error {
	err := b.counting.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.socket == nil {
		return err
	}
	err = errors.Join(err, b.socket.Close())
	b.socket, b.known = nil, nil
	return err
}
