package bench

import (
	"context"
	"net/netip"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/iptables"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// parts measures those that do the work: reader, plan, compiler, and the backend on a kernel.
func parts(b *testing.B, t *table) {
	b.Helper()
	f := newFolder(b, *services)
	s := &session{B: b, table: t, node: newNode(b), planner: plan.NewPlanner(policy())}
	var snapshot *model.Snapshot
	s.step("read the manifests", func(context.Context) error { snapshot = read(b, f.path); return nil })
	s.step("plan", func(context.Context) error { s.planner.Update(model.Delta(*snapshot)); return nil })
	s.step("compile", func(context.Context) error {
		s.ruleset = iptables.Compile(s.planner.Plan(), iptables.DefaultOptions())
		return nil
	})
	s.restart()
	s.step("first apply", s.apply)
	s.change("one endpoint becomes another", f.put(b, service(*services, *endpoints, 1)))
	s.change("a Service comes", f.put(b, service(*services, *endpoints, 1), service(*services+1, *endpoints, 0)))
	s.change("a Service goes", f.put(b, service(*services, *endpoints, 1)))
	s.step("apply with nothing changed", s.apply)
	s.step("recheck, as every 30 s", func(ctx context.Context) error { return s.write(ctx, true) })
	s.restart()
	s.step("first apply after a restart with nothing changed", s.apply)
}

// session is one planner, ruleset and backend, and the node that they work on.
type session struct {
	*testing.B
	table   *table
	node    *lab.Host
	planner *plan.Planner
	ruleset *iptables.Ruleset
	backend *iptables.Backend
}

// step measures f on the node.
func (s *session) step(what string, f func(context.Context) error) {
	s.Helper()
	s.table.add(what, measure(s.B, func() error {
		return s.node.Do(func() error { return f(s.Context()) })
	}))
}

// change measures what a change takes from the plan to the kernel.
func (s *session) change(what string, d model.Delta) {
	s.Helper()
	s.step(what, func(ctx context.Context) error {
		changes := s.planner.Update(d)
		s.ruleset.Update(s.planner.Plan(), changes)
		return s.write(ctx, false)
	})
}

// restart makes a backend that knows nothing, as a new process does.
func (s *session) restart() {
	s.Helper()
	err := s.node.Do(func() error {
		deps, _, err := iptables.System(s.Context(), s.table.variant)
		s.backend = iptables.New(iptables.DefaultOptions(), deps)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *session) apply(ctx context.Context) error { return s.write(ctx, false) }

func (s *session) write(ctx context.Context, recheck bool) error {
	_, err := s.backend.Apply(ctx, s.ruleset, backend.Request{Recheck: recheck})
	return err
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}
