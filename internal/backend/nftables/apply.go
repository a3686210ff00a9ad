package nftables

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sluice/internal/backend"
	"sluice/internal/nft/wire"
	"sluice/internal/plan"
)

// Backend is the nftables mode. It is safe for concurrent use.
type Backend struct {
	opts Options
	deps Deps

	mu     sync.Mutex
	socket Socket // nil: not yet open
	// known is what the kernel has, nil if that must be read first. It was written for of.
	known *written
	of    *Ruleset

	batch *wire.Batch
	delta delta
}

// Deps are the parts of the kernel that a Backend works with.
type Deps struct {
	// Open opens the socket; nil: nf_tables in the network namespace of the thread that calls Apply first.
	Open func() (Socket, error)
	// RouteLocalnet has the kernel route packets from loopback addresses to elsewhere, which node ports on localhost
	// need, or no longer do so. Nil: that is somebody else's business.
	RouteLocalnet func(on bool) error
}

// New makes a Backend. It touches nothing.
func New(opts Options, deps Deps) *Backend {
	if deps.Open == nil {
		deps.Open = openSocket
	}
	return &Backend{opts: opts, deps: deps, batch: wire.NewBatch(tableName)}
}

// Name is the value of --mode.
func (b *Backend) Name() string { return "nftables" }

// Compile compiles a Plan.
func (b *Backend) Compile(p *plan.Plan) backend.Ruleset { return Compile(p, b.opts) }

// Apply makes the kernel's table hold what r says. See [backend.Backend].
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
	err = b.apply(ctx, rs, req, &result)
	return result, err
}

func (b *Backend) open() (err error) {
	if b.socket == nil {
		b.socket, err = b.deps.Open()
	}
	return err
}

func (b *Backend) apply(ctx context.Context, r *Ruleset, req backend.Request, result *backend.Result) error {
	dirty := r.takeDirty()
	if b.known == nil || b.of != r || dirty.table {
		c := r.contents()
		if err := b.load(ctx, c, true); err != nil {
			r.markDirty(dirty)
			return err
		}
		b.of = r
		result.Written = 1
		return nil
	}
	ids := slices.Collect(maps.Keys(dirty.ports))
	d := &b.delta
	b.known.collect(d, r, ids)
	if d.empty() {
		b.known.advance(d, r, ids)
		return nil
	}
	b.batch.Reset()
	appendFirst(b.batch, d)
	if err := b.commit(ctx); err != nil {
		r.markDirty(dirty)
		return err
	}
	if d.late() {
		b.batch.Reset()
		appendLast(b.batch, d)
		if err := b.commit(ctx); err != nil {
			return err
		}
	}
	b.known.advance(d, r, ids)
	result.Written = d.size()
	return nil
}

// commit has the kernel take the batch.
func (b *Backend) commit(ctx context.Context) error {
	if b.batch.Empty() {
		return nil
	}
	if err := b.socket.Commit(ctx, b.batch.Finish()); err != nil {
		b.known = nil
		return fmt.Errorf("write table inet %s: %w", tableName, err)
	}
	return nil
}
