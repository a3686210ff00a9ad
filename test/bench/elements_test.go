package bench

import (
	"fmt"
	"testing"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/crowd"
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
		t := grid{head: []string{"elements", "ns each to load", "bytes each to send"}}
		for _, k := range elementKinds() {
			t.add(k.measure(b, crowd.Crowd{Services: 50_000, Endpoints: 2})...)
		}
		publish(b, "elements", t.String())
	}
}

func (k elementKind) measure(b *testing.B, c crowd.Crowd) []string {
	b.Helper()
	var costs []cost
	var length, n int
	for range loads {
		raw := newByHand(b, c)
		var bytes []byte
		bytes, n = raw.one(k)
		length = len(bytes)
		costs = append(costs, measure(b, func() error { return raw.commit(bytes) }))
		raw.close()
	}
	each := float64(median(costs).cpu.Nanoseconds()) / float64(n)
	return []string{k.what, fmt.Sprintf("%.0f", each), fmt.Sprintf("%.0f", float64(length)/float64(n))}
}

// one is a batch that fills one set, and the number of elements in it.
func (raw *byHand) one(k elementKind) (bytes []byte, n int) {
	set := k.set(&raw.sets)
	batch := wire.NewBatch(bareTable)
	batch.AddTable(nft.Table{Name: bareTable})
	k.otherwise(set, &nft.Element{})
	batch.AddSet(set)
	for i := range raw.crowd.Services {
		raw.each(set, i, func(e *nft.Element) {
			k.otherwise(set, e)
			batch.AddElement(set, e)
			n++
		})
	}
	return batch.Finish(), n
}
