package nftables

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// TestUpdate changes a plan at random. After each change the Ruleset means what compiling anew does, and the table that
// was brought up to date by deltas holds what the Ruleset wants, with never a route that leads nowhere.
func TestUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t)
		k := load(t, s.rules)
		s.rules.takeDirty()
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			if s.change(t); s.rules.dirty.table {
				k = load(t, s.rules)
				s.rules.takeDirty()
			}
			k.sync(t, s.rules, s.drawHeld(t, k))
			k.check(t, k.contents(s.rules))
			if diff := cmp.Diff(meaning(Compile(s.Plan(), s.opts)), meaning(s.rules)); diff != "" {
				t.Fatalf("-compiled +updated:\n%s", diff)
			}
		}
		k.sync(t, s.rules, func(plan.PortID) bool { return false })
		k.check(t, s.rules.contents())
		if n := k.sync(t, s.rules, func(plan.PortID) bool { return false }); n != 0 {
			t.Fatalf("%d objects are written though nothing changed", n)
		}
	})
}

// scene is a plan that changes, and its Ruleset.
type scene struct {
	*plan.Planner
	opts  Options
	rules *Ruleset
}

func newScene(t *rapid.T) *scene {
	p := plan.NewPlanner(gen.Config(t))
	p.SetHost(gen.Host(t))
	p.Update(model.Delta(*gen.Snapshot(t)))
	opts := drawOptions(t)
	return &scene{p, opts, Compile(p.Plan(), opts)}
}

// drawOptions draws who sends packets to endpoints.
func drawOptions(t *rapid.T) Options {
	return rapid.SampledFrom([]Options{DefaultOptions(), ipvsOptions()}).Draw(t, "options")
}

func (s *scene) change(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "what changes") == 0 {
		s.rules.Update(s.Plan(), s.SetHost(gen.Host(t)))
	} else {
		s.rules.Update(s.Plan(), s.Update(gen.Delta(t)))
	}
}

// drawHeld draws ports that stay as they are for once: none whose frontends others have by now.
func (s *scene) drawHeld(t *rapid.T, k *fakeKernel) func(plan.PortID) bool {
	name := rapid.SampledFrom([]string{"", "", "a", "b", "c", "d"}).Draw(t, "held")
	return func(id plan.PortID) bool {
		if id.Service.Name != name {
			return false
		}
		if k.applied[id] == nil {
			return true
		}
		return !slices.ContainsFunc(k.applied[id].plan.Frontends, func(fe plan.Frontend) bool {
			owner, _, ok := s.Plan().Owner(fe.Key)
			return ok && owner.ID != id
		})
	}
}

// contents are what the table is to hold, with ports that are on hold as they were.
func (k *fakeKernel) contents(r *Ruleset) *contents {
	c := r.contents()
	c.setPorts(sorted(k.applied))
	return c
}

// meaning is what a Ruleset does, whatever the numbers and the places of slots.
func meaning(r *Ruleset) (all []string) {
	names := map[listNumber]string{}
	for _, p := range r.ports {
		for i := range p.lists {
			if l := &p.lists[i]; l.number != 0 {
				names[l.number] = fmt.Sprintf("list %d of %s/%s/%s", i, p.plan.ID, p.plan.ID.Protocol, p.plan.ID.Family)
			}
		}
	}
	c := r.contents()
	for set := range setCount {
		for e := range c.elements(set, references{}) {
			if set != setBuckets { // chains may be there that no list needs
				all = append(all, r.means(set, e, names))
			}
		}
	}
	slices.Sort(all)
	return all
}

func (r *Ruleset) means(set setID, e *nft.Element, names map[listNumber]string) string {
	key, data := nft.NewReader(e.Key), nft.NewReader(e.Data)
	listOf := func(n uint32) string { return names[listNumber(n>>shiftList)] }
	text := set.name() + " "
	switch {
	case isRoutes(set):
		to := route(data.Uint32())
		return text + fmt.Sprintf("%x %s by %s, %d %s", e.Key, names[to.list()], r.bucketName(to.bucket()), to.masquerade(), e.Comment)
	case set.ofIPv4() == setEndpoints:
		return text + listOf(key.Uint32()) + fmt.Sprintf(" %x", e.Data)
	case set.ofIPv4() == setAffineSlots:
		id := data.Uint32()
		to, ok := affineTarget(r, id)
		return text + listOf(key.Uint32()) + " " + listOf(id) + fmt.Sprint(to, ok)
	case set.ofIPv4() == setAffineEndpoints:
		return text + listOf(key.Uint32()) + fmt.Sprintf(" %x", e.Data)
	case set == setConnections:
		return text + listOf(key.Uint32()) + " " + e.Comment
	case set == setRoundRobin, set.ofIPv4() == setMarks:
		return text + listOf(key.Uint32())
	case isShared(set):
		e.Comment = ""
	}
	return line(set, e)
}

// affineTarget looks up an endpoint by its number.
func affineTarget(r *Ruleset, id uint32) (to nft.Value, ok bool) {
	for f := range setID(2) {
		for e := range r.contents().elements(setAffineEndpoints+f, references{}) {
			if key := e.Key; nft.NewReader(key).Uint32() == id {
				return e.Data, true
			}
		}
	}
	return to, false
}

func (r *Ruleset) bucketName(n bucketNumber) string {
	if n < firstBucket {
		return strings.Fields("reject drop round-robin")[n]
	}
	return r.buckets.byNumber[n].name()
}
