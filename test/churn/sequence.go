package churn

import (
	"math/rand/v2"

	"sluice/internal/model"
	"sluice/internal/testkit/crowd"
)

// mostEndpoints is the most that a Service has while it changes, and versions how many addresses the first one may have.
const (
	mostEndpoints = 12
	versions      = 20
)

// sequence makes the same changes each time it is made of the same Config.
type sequence struct {
	Config
	crowd crowd.Crowd
	rnd   *rand.Rand
	gone  map[int]bool
}

func newSequence(c Config) *sequence {
	return &sequence{Config: c, crowd: c.crowd(), rnd: rand.New(rand.NewPCG(c.Seed, 0)), gone: map[int]bool{}}
}

// next is a change of one Service that is not stable: mostly another endpoint, now and then more or fewer of them, none,
// or the whole Service.
func (s *sequence) next() model.Delta {
	i := s.Stable + s.rnd.IntN(s.Services-s.Stable)
	if s.gone[i] {
		delete(s.gone, i)
		return s.crowd.Add(i)
	}
	c := s.crowd
	switch s.rnd.IntN(10) {
	case 0:
		s.gone[i] = true
		return c.Remove(i)
	case 1, 2:
		c.Endpoints = s.rnd.IntN(mostEndpoints + 1)
	}
	return c.Change(i, s.rnd.IntN(versions))
}

// outcome is all that is there after all changes.
func outcome(c Config) *model.Snapshot {
	s := newSequence(c)
	snapshot := s.crowd.Snapshot()
	for range c.Changes {
		snapshot.Apply(s.next())
	}
	return snapshot
}
