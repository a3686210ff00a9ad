package nftables

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// fakeKernel is a table as a kernel keeps it, and what its writer remembers of it. It is as strict: what is removed must
// be there, what is added must not.
type fakeKernel struct {
	elements map[setKey]nft.Element
	chains   map[string]nft.Chain

	applied map[plan.PortID]*port
	node    *nodePart
	buckets bucketTable
	refs    references
}

// load makes the table anew.
func load(t rapid.TB, r *Ruleset) *fakeKernel {
	k := &fakeKernel{elements: map[setKey]nft.Element{}, chains: map[string]nft.Chain{}, refs: references{}}
	c := r.contents()
	for ch := range c.chains {
		k.chains[ch.Name] = *ch
	}
	for set := range setCount {
		for e := range c.elements(set, k.refs) {
			k.add(t, set, *e)
		}
	}
	k.applied, k.node, k.buckets = maps.Clone(r.ports), r.node, r.buckets.byNumber
	return k
}

// sync brings the table up to date by deltas. Ports on hold stay as they are.
func (k *fakeKernel) sync(t rapid.TB, r *Ruleset, hold func(plan.PortID) bool) (written int) {
	routes := k.routes()
	dirty := r.takeDirty()
	var d delta
	for _, id := range slices.SortedFunc(maps.Keys(dirty.ports), plan.PortID.Compare) {
		if hold(id) {
			r.markDirty(dirt{ports: map[plan.PortID]struct{}{id: {}}})
			continue
		}
		d.port(k.applied[id], r.ports[id])
		if k.applied[id] = r.ports[id]; r.ports[id] == nil {
			delete(k.applied, id)
		}
	}
	d.node(k.node, r.node)
	d.buckets(&k.buckets, &r.buckets.byNumber)
	d.finish(k.refs)
	k.checkNew(t, &d)
	k.first(t, &d)
	k.checkRoutes(t, append(routes, k.routes()...))
	k.last(t, &d)
	k.checkRoutes(t, k.routes())
	k.refs.commit(&d)
	k.node, k.buckets = r.node, r.buckets.byNumber
	return d.size()
}

func (k *fakeKernel) first(t rapid.TB, d *delta) {
	for _, c := range slices.Concat(d.newChains, d.chains) {
		k.chains[c.Name] = c
	}
	for set := range setCount {
		for _, e := range d.remove[set] {
			k.remove(t, set, e)
		}
	}
	for set := range setCount {
		for _, e := range d.add[set] {
			k.add(t, set, e)
		}
	}
}

func (k *fakeKernel) last(t rapid.TB, d *delta) {
	for set := range setCount {
		for _, e := range d.last[set] {
			k.remove(t, set, e)
		}
	}
	for _, name := range d.lastChains {
		if _, ok := k.chains[name]; !ok {
			t.Fatalf("chain %s is not there", name)
		}
		delete(k.chains, name)
	}
	for key, e := range k.elements {
		if e.Verdict.Kind != nft.NoVerdict && k.chains[e.Verdict.Chain].Name == "" {
			t.Fatalf("%v leads to %s, which is not there", key, e.Verdict.Chain)
		}
	}
}

func (k *fakeKernel) add(t rapid.TB, set setID, e nft.Element) {
	key := setKey{set, e.Key, e.End}
	if was, ok := k.elements[key]; ok {
		t.Fatalf("add %s: there is %s", line(set, &e), line(set, &was))
	}
	k.elements[key] = e
}

func (k *fakeKernel) remove(t rapid.TB, set setID, e nft.Element) {
	key := setKey{set, e.Key, e.End}
	if was, ok := k.elements[key]; !ok || was.Data != e.Data {
		t.Fatalf("remove %s: there is %s", line(set, &e), line(set, &was))
	}
	delete(k.elements, key)
}

func line(set setID, e *nft.Element) string { return set.name() + " " + sets[set].ElementString(e) }

// checkNew has each chain that is made before the elements be one that was not there, or the same again, and each that is
// rewritten with them one that was.
func (k *fakeKernel) checkNew(t rapid.TB, d *delta) {
	for _, c := range d.newChains {
		if was, there := k.chains[c.Name]; there && chainText(&was) != chainText(&c) {
			t.Fatalf("chain %s is made before the elements, and was another one", c.Name)
		}
	}
	for _, c := range d.chains {
		if _, there := k.chains[c.Name]; !there {
			t.Fatalf("chain %s is made with the elements that lead there", c.Name)
		}
	}
}

// led is a route and the set that it was found in.
type led struct {
	set   setID
	route route
}

// routes are those that a packet may find.
func (k *fakeKernel) routes() (all []led) {
	for key, e := range k.elements {
		if isRoutes(key.set) {
			all = append(all, led{key.set, route(nft.NewReader(e.Data).Uint32())})
		}
	}
	return all
}

// checkRoutes walks each route to its end: all that it can lead to must be there.
func (k *fakeKernel) checkRoutes(t rapid.TB, all []led) {
	for _, l := range all {
		if l.route.bucket() < bucketRoundRobin || k.leadsToIPVS(t, l) {
			continue
		}
		e, ok := k.elements[setKey{set: setBuckets, key: nft.Value{}.Uint32(l.route.bucket().key())}]
		if ok && l.route.bucket() == bucketRoundRobin {
			e, ok = k.elements[setKey{set: setRoundRobin, key: nft.Value{}.Uint32(l.route.list().key())}]
		}
		c, there := k.chains[e.Verdict.Chain]
		if !ok || !there {
			t.Fatalf("route %x leads nowhere: %v", l.route, e.Verdict)
		}
		last := c.Rules[len(c.Rules)-1-int(1-l.set.family())*b2i(len(c.Rules) == 3)]
		dnat := last.Statements[len(last.Statements)-1].(nft.DNAT)
		pick := dnat.To.Key.(nft.Concat)[1].(nft.Numgen)
		for i := range pick.Mod {
			slot := nft.Value{}.Uint32(l.route.list().key()).Uint32(i)
			if _, ok := k.elements[setKey{set: setEndpoints.of(l.set.family()), key: slot}]; !ok {
				t.Fatalf("route %x leads to %s, which has no slot %d of %d", l.route, c.Name, i, pick.Mod)
			}
		}
	}
}

// leadsToIPVS reports whether routes end at ipvs. Those of clients outside must have a mark.
func (k *fakeKernel) leadsToIPVS(t rapid.TB, l led) bool {
	if _, there := k.chains["filter-unserved"]; !there {
		return false
	}
	if of := l.set.ofIPv4(); of == setOutside || of == setOutsideNodePorts {
		key := setKey{set: setMarks.of(l.set.family()), key: nft.Value{}.Uint32(l.route.list().key())}
		if _, ok := k.elements[key]; !ok {
			t.Fatalf("route %x leads to no virtual server", l.route)
		}
	}
	return true
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// check compares the table with what it is to hold. Comments of what ports share depend on who was first.
func (k *fakeKernel) check(t rapid.TB, c *contents) {
	want := map[setKey]nft.Element{}
	refs := references{}
	for set := range setCount {
		for e := range c.elements(set, refs) {
			want[setKey{set, e.Key, e.End}] = *e
		}
	}
	if diff := cmp.Diff(lines(want), lines(k.elements)); diff != "" {
		t.Fatalf("elements (-wanted +kernel):\n%s", diff)
	}
	if !maps.Equal(refs, k.refs) {
		t.Fatalf("references: %v, want %v", k.refs, refs)
	}
	var chains []string
	for ch := range c.chains {
		chains = append(chains, chainText(ch))
	}
	var have []string
	for _, ch := range k.chains {
		have = append(have, chainText(&ch))
	}
	slices.Sort(chains)
	slices.Sort(have)
	if diff := cmp.Diff(chains, have); diff != "" {
		t.Fatalf("chains (-wanted +kernel):\n%s", diff)
	}
}

func lines(elements map[setKey]nft.Element) (all []string) {
	for k, e := range elements {
		if isShared(k.set) {
			e.Comment = ""
		}
		all = append(all, line(k.set, &e))
	}
	slices.Sort(all)
	return all
}

func chainText(c *nft.Chain) string {
	text := fmt.Sprintf("chain %s %q\n", c.Name, c.Comment)
	for _, r := range c.Rules {
		text += r.String() + "\n"
	}
	return text
}
