package nftables

import (
	"iter"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/sample"
)

// read is what a new process learns of the table.
func (k *fakeKernel) read() *held {
	h := newHeld()
	for key, e := range k.elements {
		h.take(key.set, &e)
	}
	for set := range setCount {
		h.size(set, sets[set].Size)
	}
	return h
}

func (k *fakeKernel) elementsOf(set setID) iter.Seq[*nft.Element] {
	return func(yield func(*nft.Element) bool) {
		for key, e := range k.elements {
			if key.set == set && !yield(&e) {
				return
			}
		}
	}
}

// catchUp is what a new process does with the table: it adopts the numbers and writes what differs.
func (k *fakeKernel) catchUp(t rapid.TB, r *Ruleset) (written int) {
	r.adopt(k.read())
	c, refs, d := r.contents(), references{}, delta{}
	for set := range setCount {
		d.compare(c, set, refs, k.elementsOf(set))
	}
	for ch := range c.chains {
		switch was, ok := k.chains[ch.Name]; {
		case !ok:
			d.newChains = append(d.newChains, *ch)
		case chainText(&was) != chainText(ch):
			d.chains = append(d.chains, *ch)
		}
	}
	for name := range k.chains {
		if isTurnsChain(name) && !wants(c, name) {
			d.lastChains = append(d.lastChains, name)
		}
	}
	k.first(t, &d)
	k.last(t, &d)
	k.refs = refs
	return d.size()
}

func wants(c *contents, chain string) bool {
	for ch := range c.chains {
		if ch.Name == chain {
			return true
		}
	}
	return false
}

// TestAdopt: a new process that wants what an old one has written, numbered by a long history, writes nothing; and if
// the plan changed meanwhile, the table holds what it is to hold.
func TestAdopt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t)
		k := load(t, s.rules)
		s.rules.takeDirty()
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			s.change(t)
			k.sync(t, s.rules, func(plan.PortID) bool { return false })
		}
		again := Compile(s.Plan(), s.opts)
		if n := k.catchUp(t, again); n != 0 {
			t.Fatalf("%d objects written for the same plan", n)
		}
		s.Update(gen.Delta(t))
		again = Compile(s.Plan(), s.opts)
		k.catchUp(t, again)
		k.check(t, again.contents())
	})
}

// TestAdoptNonsense: elements that nobody sane wrote do no harm.
func TestAdoptNonsense(t *testing.T) {
	h := newHeld()
	number := func(n uint32) nft.Value { return nft.Value{}.Uint32(n) }
	h.take(setEndpoints, &nft.Element{Key: number(0x1000).Uint32(1 << 31)})
	h.take(setEndpoints, &nft.Element{})
	h.take(setAffineEndpoints, &nft.Element{Key: number(0x1000)})
	h.take(setBuckets, &nft.Element{Key: number(0x8), Verdict: nft.Verdict{Chain: "random-9"}})
	h.take(setBuckets, &nft.Element{Key: number(0xffc), Verdict: nft.Verdict{Chain: "foreign"}})
	h.take(setServices, &nft.Element{Key: number(1), Data: number(0xfffff000)})
	if h.buckets != (bucketTable{}) {
		t.Errorf("buckets: %v", h.buckets)
	}
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	r := Compile(planOf(s, sl), DefaultOptions())
	want := meaning(r)
	r.adopt(h)
	if diff := cmp.Diff(want, meaning(r)); diff != "" {
		t.Error(diff)
	}
}

// TestAdoptKeepsPlaces: an endpoint stays in its slot, and what came between takes only those that became free.
func TestAdoptKeepsPlaces(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	k := load(t, Compile(planOf(s, sl), DefaultOptions()))
	sl.Endpoints = append([]model.Endpoint{endpointAt(netip.MustParseAddr("10.244.0.1"))}, sl.Endpoints[1:]...)
	if n := k.catchUp(t, Compile(planOf(s, sl), DefaultOptions())); n != 3 {
		t.Errorf("%d objects written, want 3: the slot, and an endpoint's hairpin twice", n)
	}
}
