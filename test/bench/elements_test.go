package bench

import (
	"fmt"
	"testing"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/crowd"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// elementKind is elements of one set as Sluice writes them, or otherwise.
type elementKind struct {
	what string
	set  func(*bareSets) *nft.Set
	// otherwise changes the set and each element.
	otherwise func(*nft.Set, *nft.Element)
}

func elementKinds() []elementKind {
	asIs := func(*nft.Set, *nft.Element) {}
	named := func(_ *nft.Set, e *nft.Element) { e.Comment = "default/service-12345:http" }
	nameless := func(_ *nft.Set, e *nft.Element) { e.Comment = "" }
	endpoints := func(s *bareSets) *nft.Set { return &s.endpoints }
	services := func(s *bareSets) *nft.Set { return &s.services }
	connections := func(s *bareSets) *nft.Set { return &s.connections }
	return []elementKind{
		{"endpoints4", endpoints, asIs},
		{"endpoints4, if each had a comment", endpoints, named},
		{"hairpin4", func(s *bareSets) *nft.Set { return &s.hairpin }, asIs},
		{"services4, each with a comment", services, asIs},
		{"services4, if none had a comment", services, nameless},
		{"connections, each with a counter and a comment", connections, asIs},
		{"connections, if none had a comment", connections, nameless},
		{"connections, if none had a counter", connections, func(s *nft.Set, _ *nft.Element) { s.Counter = false }},
	}
}

// BenchmarkElements measures what elements of each kind cost to load, with and without comments and counters.
func BenchmarkElements(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		c := crowd.Crowd{Services: 50_000, Endpoints: 2}
		kinds := elementKinds()
		costs, each := make([]cost, len(kinds)), make([]load, len(kinds))
		for range loads {
			for i, k := range kinds {
				var took cost
				took, each[i] = k.measure(b, c)
				costs[i] = quicker(costs[i], took)
			}
		}
		t := figures.Grid{Head: []string{"elements", "ns each to load", "bytes each to send"}}
		for i, k := range kinds {
			n := float64(each[i].elements)
			t.Add(k.what, fmt.Sprintf("%.0f", float64(costs[i].cpu.Nanoseconds())/n), fmt.Sprintf("%.0f", float64(len(each[i].bytes))/n))
		}
		publish(b, "elements", t.String())
	}
}

// load is a batch that fills one set.
type load struct {
	bytes    []byte
	elements int
}

func (k elementKind) measure(b *testing.B, c crowd.Crowd) (cost, load) {
	b.Helper()
	raw := newByHand(b, c)
	defer raw.close()
	l := raw.one(k)
	return measure(b, func() error { return raw.commit(l.bytes) }), l
}

func (raw *byHand) one(k elementKind) (l load) {
	set := k.set(&raw.sets)
	batch := wire.NewBatch(bareTable)
	batch.AddTable(nft.Table{Name: bareTable})
	k.otherwise(set, &nft.Element{})
	batch.AddSet(set)
	for i := range raw.crowd.Services {
		raw.each(set, i, func(e *nft.Element) {
			k.otherwise(set, e)
			batch.AddElement(set, e)
			l.elements++
		})
	}
	l.bytes = batch.Finish()
	return l
}
