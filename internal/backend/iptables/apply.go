package iptables

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Backend is the iptables mode. It is safe for concurrent use.
type Backend struct {
	opts Options
	deps Deps

	mu    sync.Mutex
	sides [2]*side // by family; nil: the family is left out
}

// Deps are the kernel's parts that a Backend works with.
type Deps struct {
	// Tables are those of each family; nil: this machine cannot do the family.
	Tables [2]Tables
	// Others are those of the other variant of the programs, or of a family left out, where an earlier proxy may have
	// left chains. They are only looked at, and cleaned up.
	Others []Other
	// RouteLocalnet has the kernel route packets from loopback addresses to elsewhere, which node ports on localhost
	// need, or no longer do so. Nil: that is somebody else's business.
	RouteLocalnet func(on bool) error
}

// Other is tables and what they are called in messages.
type Other struct {
	Name string // "IPv4, legacy"
	Tables
}

// New makes a Backend. It touches nothing.
func New(opts Options, deps Deps) *Backend {
	b := &Backend{opts: opts, deps: deps}
	ours := new(uint32)
	for f, t := range deps.Tables {
		if t != nil {
			b.sides[f] = &side{tables: watched{t, ours}, ours: ours}
		}
	}
	return b
}

// Name is the value of --mode.
func (b *Backend) Name() string { return "iptables" }

// Compile compiles a Plan.
func (b *Backend) Compile(p *plan.Plan) backend.Ruleset { return Compile(p, b.opts) }

// Apply makes the kernel's tables hold what r says. See [backend.Backend].
func (b *Backend) Apply(ctx context.Context, r backend.Ruleset, req backend.Request) (total backend.Result, err error) {
	rs, ok := r.(*Ruleset)
	if !ok {
		return total, fmt.Errorf("apply: %T is not a ruleset of mode iptables", r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sides == [2]*side{} {
		return total, ErrNoFamily
	}
	var errs []error
	for _, f := range model.Families {
		if b.sides[f] == nil {
			continue
		}
		result, err := b.sides[f].apply(ctx, rs.families[f], req.Recheck)
		if err == nil && rs.families[f].localhost() && b.deps.RouteLocalnet != nil {
			err = b.deps.RouteLocalnet(true) // not before KUBE-FIREWALL guards loopback addresses
		}
		if err != nil {
			errs = append(errs, &backend.FamilyError{Family: f, Err: err})
		}
		if errors.Is(err, ErrNoFamily) {
			b.sides[f] = nil
		}
		total.Written += result.Written
		total.Former = append(total.Former, result.Former...)
		for _, object := range result.Restored {
			total.Restored = append(total.Restored, f.String()+" "+object)
		}
	}
	return total, errors.Join(errs...)
}

// apply writes what differs. A chain that turns out to be held is left where it is, and the rest is written.
func (s *side) apply(ctx context.Context, f *family, recheck bool) (total backend.Result, err error) {
	for {
		result, d, err := s.applyOnce(ctx, f, recheck)
		total.Written += result.Written
		total.Restored = append(total.Restored, result.Restored...)
		total.Former = append(total.Former, result.Former...)
		if !s.held.note(d, refusedLine(err)) {
			return total, err
		}
	}
}

// applyOnce tells as well what it wrote, or was to write.
func (s *side) applyOnce(ctx context.Context, f *family, recheck bool) (result backend.Result, d delta, err error) {
	first := !s.known
	read, err := s.mustRead(f, recheck)
	if err == nil && read {
		result.Restored, err = s.refresh(ctx, f.chains)
	}
	if err == nil && first {
		result.Former = f.former(s.shadow)
	}
	if err != nil {
		s.forget()
		return result, d, err
	}
	d = s.delta(f)
	if d.size() == 0 {
		return result, d, nil
	}
	if err := s.write(ctx, d); err != nil {
		return result, d, f.blame(err, d, refusedLine(err))
	}
	result.Written = d.size()
	return result, d, nil
}

// delta is what differs, as far as is known.
func (s *side) delta(f *family) delta {
	d := diff(f.desired, s.shadow)
	s.held.spare(&d, s.shadow)
	return d
}

// refusedLine is the line that iptables-restore did not take, from 1; 0: it is not about one.
func refusedLine(err error) int {
	if refused, ok := errors.AsType[*iptexec.RestoreError](err); ok {
		return refused.Line
	}
	return 0
}

// write gives the kernel d. After an error nothing is known of the tables: some may be written and others not.
func (s *side) write(ctx context.Context, d delta) error {
	if err := s.tables.Restore(ctx, d.text()); err != nil {
		s.forget()
		return err
	}
	s.shadow.advance(d)
	return nil
}
