package bench

import (
	"context"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/crowd"
)

// sluice is what the daemon does between its source and the kernel.
type sluice struct {
	*testing.B
	crowd   crowd.Crowd
	node    *lab.Host
	end     func()
	planner *plan.Planner
	ruleset backend.Ruleset
	backend *nftables.Backend
	unwatch func()
	parts   []part // of the last load
}

// part is a step of a load.
type part struct {
	what string
	cost
}

func newSluice(b *testing.B, c crowd.Crowd) *sluice {
	b.Helper()
	s := &sluice{B: b, crowd: c}
	s.node, s.end = emptyNode(b)
	s.begin()
	return s
}

// begin makes planner and backend as a new process does.
func (s *sluice) begin() {
	s.Helper()
	s.planner = plan.NewPlanner(policyNFTables())
	s.backend = nftables.New(nftables.DefaultOptions(), nftables.Deps{})
	s.ruleset = nil
	s.watch()
}

// watch listens to what others do, which makes writing dearer, as the daemon does.
func (s *sluice) watch() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	listening, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- s.node.Do(func() error {
			return s.backend.Watch(ctx, func() {
				select {
				case listening <- struct{}{}:
				default:
				}
			})
		})
	}()
	select {
	case <-listening:
	case err := <-ended:
		s.Fatal("watch: ", err)
	}
	s.unwatch = func() { cancel(); <-ended }
}

// deafly measures while nobody listens. As long as anybody does, in whichever network namespace, the kernel makes
// notifications of all that is written; a load of our own has its listener pause.
func (s *sluice) deafly(f func() cost) cost {
	s.Helper()
	s.unwatch()
	defer s.watch()
	return f()
}

// policyNFTables is that of the mode.
func policyNFTables() plan.Config {
	c := policy()
	c.GuardClusterIPs, c.NodePortAddresses = true, plan.NodePortAddresses{Primary: true}
	return c
}

// forget ends what begin began.
func (s *sluice) forget() {
	s.Helper()
	s.unwatch()
	if err := s.backend.Close(); err != nil {
		s.Error(err)
	}
}

// clear makes the kernel as it was, and begins anew.
func (s *sluice) clear() {
	s.Helper()
	s.measure(false, func() error { return s.backend.Cleanup(s.Context()) })
	s.forget()
	s.begin()
}

// close lets go of it.
func (s *sluice) close() {
	s.Helper()
	s.forget()
	s.end()
}

// load measures from the objects until all is written.
func (s *sluice) load() cost {
	s.Helper()
	snapshot := model.Delta(*s.crowd.Snapshot())
	s.parts = nil
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"plan", func() error { s.planner.Update(snapshot); return nil }},
		{"compile", func() error { s.ruleset = s.backend.Compile(s.planner.Plan()); return nil }},
		{"compare and write", func() error { _, err := s.apply(); return err }},
	} {
		s.parts = append(s.parts, part{step.what, s.measure(true, step.do)})
	}
	return s.total()
}

// total is what the parts of the last load took together.
func (s *sluice) total() (total cost) {
	for _, p := range s.parts {
		total = total.plus(p.cost)
	}
	return total
}

// change measures one change, from the objects until it is written.
func (s *sluice) change(ch change, i int) cost {
	s.Helper()
	d := ch.delta(s.crowd, i)
	return s.measure(false, func() error {
		s.ruleset.Update(s.planner.Plan(), s.planner.Update(d))
		_, err := s.apply()
		return err
	})
}

func (ch change) delta(c crowd.Crowd, i int) model.Delta {
	switch service := ch.of(c, i); ch.kind {
	case added:
		return c.Add(service)
	case removed:
		return c.Remove(service)
	default:
		return c.Change(service, 1)
	}
}

// restart measures a new process that finds everything as it should be.
func (s *sluice) restart() cost {
	s.Helper()
	snapshot := model.Delta(*s.crowd.Snapshot())
	for i := range repeats { // these were changed
		snapshot.Slices[s.slice(i).Name] = s.slice(i)
	}
	s.forget()
	s.begin()
	return s.measure(true, func() error {
		s.planner.Update(snapshot)
		s.ruleset = s.backend.Compile(s.planner.Plan())
		result, err := s.apply()
		if result.Written > 0 {
			s.Errorf("a start with nothing changed wrote %d objects", result.Written)
		}
		return err
	})
}

// slice is that of the Service which was changed at the i-th time.
func (s *sluice) slice(i int) *model.Slice {
	ch := changes()[0]
	for _, slice := range ch.delta(s.crowd, i).Slices {
		return slice
	}
	return nil
}

func (s *sluice) measure(first bool, f func() error) (c cost) {
	s.Helper()
	how := measureNow
	if first {
		how = measure
	}
	err := s.node.Do(func() error { c = how(s.B, f); return nil })
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *sluice) apply() (backend.Result, error) {
	return s.backend.Apply(s.Context(), s.ruleset, backend.Request{})
}
