package iptables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Backend is the iptables mode. It is safe for concurrent use.
type Backend struct {
	opts Options
	deps Deps

	gauges   [2]*gauge  // by family; nil: there is none
	counting sync.Mutex // guards what the gauges have counted

	mu    sync.Mutex // guards all following fields
	sides [2]*side   // by family; nil: the family is left out
	watch *watch     // nil: nobody watches
}

// Deps are the kernel's parts that a Backend works with.
type Deps struct {
	// Tables are those of each family; nil: this machine cannot do the family.
	Tables [2]Tables
	// Others are those of the other variant of the programs, or of a family left out, where an earlier proxy may have
	// left chains. They are only looked at, and cleaned up.
	Others []Other
	// Listen hears what others do to the Tables. Nil: the kernel does not tell.
	Listen func() (Listener, error)
	// RouteLocalnet has the kernel route packets from loopback addresses to elsewhere, which node ports on localhost
	// need, or no longer do so: see localnet. An Apply calls it again if it fails. Nil: that is somebody else's business.
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
			b.gauges[f] = &gauge{tables: t}
			b.sides[f] = &side{tables: counted{t, ours, b.deaf}, ours: ours, gauge: b.gauges[f]}
		}
	}
	if s := b.sides[model.IPv4]; s != nil {
		s.localnet.set = deps.RouteLocalnet
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
		result, err := b.sides[f].apply(ctx, rs.families[f], req)
		b.sides[f].publish(f)
		if err == nil {
			err = b.sides[f].localnet.route(rs.families[f])
		}
		if err != nil {
			errs = append(errs, &backend.FamilyError{Family: f, Err: err})
		}
		if errors.Is(err, ErrNoFamily) {
			b.sides[f] = nil
		}
		total.Written += result.Written
		total.Former = append(total.Former, result.Former...)
		total.Phases.Add(result.Phases)
		for _, object := range result.Restored {
			total.Restored = append(total.Restored, f.String()+" "+object)
		}
		for port, why := range result.Refused {
			total.Refuse(port, why)
		}
	}
	b.missed()
	return total, errors.Join(errs...)
}

// maxRefused is how many Service ports one Apply finds out that the kernel refuses, each at the price of a restore. If
// there are more, they are not to blame.
const maxRefused = 16

// apply writes what differs. A chain that turns out to be held is left where it is, a Service port that is refused is
// left as it is, and the rest is written.
func (s *side) apply(ctx context.Context, f *family, req backend.Request) (total backend.Result, err error) {
	s.tally.wrote = ruleCount{}
	aside := aside{}
	maps.Copy(aside, req.Hold)
	for recheck := req.Recheck; ; recheck = false {
		result, d, err := s.applyOnce(ctx, f, aside, recheck)
		total.Written += result.Written
		total.Restored = append(total.Restored, result.Restored...)
		total.Former = append(total.Former, result.Former...)
		total.Phases.Add(result.Phases)
		port, refused := refusedPort(err)
		stays, is := aside[port]
		switch {
		case s.held.note(d, refusedLine(err)):
		case refused && !is && len(total.Refused) < maxRefused:
			aside[port] = true
			total.Refuse(port, err)
		case refused && stays:
			aside[port] = false
		default:
			return total, err
		}
	}
}

// applyOnce tells as well what it wrote, or was to write.
func (s *side) applyOnce(ctx context.Context, f *family, aside aside, recheck bool) (result backend.Result, d delta, err error) {
	first, start := !s.known, time.Now()
	read, err := s.mustRead(f.setAside(aside, s.shadow), recheck)
	if err == nil && read {
		result.Restored, err = s.refresh(ctx, f.chains)
	}
	if err == nil && first {
		result.Former = f.former(s.shadow)
		s.localnet.find(s.shadow)
	}
	start = result.Phases.Since(start, backend.Read)
	if err != nil {
		s.forget()
		return result, d, err
	}
	f = s.localnet.unrouteBefore(f, recheck).setAside(aside, s.shadow)
	d = s.delta(f)
	start = result.Phases.Since(start, backend.Compare)
	if d.size() == 0 {
		return result, d, nil
	}
	if result.Written, err = s.write(ctx, d); err != nil {
		err = f.blame(err, d, refusedLine(err))
	}
	result.Phases.Since(start, backend.Write)
	return result, d, err
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

// refusedPort is the Service port whose rules the kernel does not take. It reports false if the error is not about one,
// or if the kernel may take them another time.
func refusedPort(err error) (port plan.PortID, ok bool) {
	line, ok := errors.AsType[*LineError](err)
	if !ok || line.Port == nil || errors.Is(err, iptexec.ErrTransient) || errors.Is(err, iptexec.ErrTooLarge) {
		return port, false
	}
	return *line.Port, true
}

// write gives the kernel d, and tells how many objects of it are written. After a refusal of one line these are those of
// the tables ahead of it; after any other error nothing is known of any. Where the kernel does not tell of changes,
// nothing is gained by knowing.
func (s *side) write(ctx context.Context, d delta) (written int, err error) {
	text := d.text()
	if err = s.gauge.writing(d, func() error { return s.tables.Restore(ctx, text) }); err != nil {
		line := refusedLine(err)
		if _, tells, _ := s.tables.Generation(); !tells || line == 0 {
			s.forget()
			return 0, err
		}
		d = d.ahead(text, line)
	}
	s.tally.advance(d, s.shadow)
	s.shadow.advance(d)
	return d.size(), err
}

// ahead is the part of d that is in the tables ahead of the one that a line of its text is in.
func (d delta) ahead(text []byte, line int) (part delta) {
	all := lines(string(text))
	copy(part[:tableAt(all[:min(line, len(all))])], d[:])
	return part
}
