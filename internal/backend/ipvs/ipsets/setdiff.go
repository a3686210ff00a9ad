package ipsets

import (
	"slices"

	"sluice/internal/iptables/sets"
	"sluice/internal/plan"
)

// contents are the sets of one family that the kernel has, by kind; nil: it has none.
type contents [kinds]*sets.Set

// setDelta is what must be done to one set.
type setDelta struct {
	kind
	// header is what the set is to be made with; the zero Header: it is there as it should be.
	header sets.Header
	// replace is set if it is there, of another size or type.
	replace bool
	remove  []sets.Entry
	add     []item
}

type item struct {
	sets.Entry
	mark uint32
}

// setChanges finds what makes have into f's sets, but for those to destroy, which wait until no rule names them. Of entries
// only those at the places named are looked at; all: every one.
func (f *family) setChanges(have *contents, places []place, all bool, held map[place]bool) (ds []setDelta) {
	for k := range kinds {
		if !f.present(k) {
			continue
		}
		d := setDelta{kind: k}
		want := header(k, f.family, len(f.entries[k]))
		switch was := have[k]; {
		case was == nil:
			d.header = want
		case was.Entries == nil || was.MaxElem < want.MaxElem || was.Marks != want.Marks:
			d.header, d.replace = want, true
		}
		if d.header.Name != "" || all {
			d.compareAll(f, have[k], held)
		} else {
			d.compare(f, have[k], places, held)
		}
		if d.size() > 0 {
			ds = append(ds, d)
		}
	}
	return ds
}

func (d *setDelta) size() (n int) {
	if d.header.Name != "" {
		n = 1
	}
	return n + len(d.add) + len(d.remove)
}

func (d *setDelta) compareAll(f *family, have *sets.Set, held map[place]bool) {
	if have == nil || d.replace {
		have = &sets.Set{}
	}
	var places []place
	for e := range have.Entries {
		places = append(places, place{d.kind, e})
	}
	for e := range f.entries[d.kind] {
		if _, both := have.Entries[e]; !both {
			places = append(places, place{d.kind, e})
		}
	}
	d.compare(f, have, places, held)
}

// compare finds what differs at some places. What is held stays as it is.
func (d *setDelta) compare(f *family, have *sets.Set, places []place, held map[place]bool) {
	seen := map[place]bool{}
	for _, p := range places {
		if p.kind != d.kind || held[p] || seen[p] {
			continue
		}
		seen[p] = true
		want, wanted := f.entries[p.kind][p.Entry]
		mark, is := have.Entries[p.Entry]
		switch {
		case !wanted && is:
			d.remove = append(d.remove, p.Entry)
		case wanted && (!is || mark != want.mark):
			d.add = append(d.add, item{p.Entry, want.mark})
		}
	}
	slices.SortFunc(d.remove, sets.Entry.Compare)
	slices.SortFunc(d.add, func(a, b item) int { return a.Compare(b.Entry) })
}

// advance notes that d is done.
func (c *contents) advance(d *setDelta) {
	if d.header.Name != "" {
		c[d.kind] = &sets.Set{Header: d.header, Entries: map[sets.Entry]uint32{}}
	}
	for _, e := range d.remove {
		delete(c[d.kind].Entries, e)
	}
	for _, i := range d.add {
		c[d.kind].Entries[i.Entry] = i.mark
	}
}

// placesOf are those of some Service ports.
func (f *family) placesOf(ports map[plan.PortID]bool) map[place]bool {
	places := map[place]bool{}
	for id := range ports {
		for _, m := range f.members[id] {
			places[place{m.kind, m.Entry}] = true
		}
	}
	return places
}

// ownerOf is a Service port that has an entry.
func (f *family) ownerOf(p place) (plan.PortID, bool) {
	for id, members := range f.members {
		if slices.ContainsFunc(members, func(m member) bool { return m.kind == p.kind && m.Entry == p.Entry }) {
			return id, true
		}
	}
	return plan.PortID{}, false
}

// formerKeys are the frontends that the kernel's sets serve and f does not.
func (f *family) formerKeys(have *contents) (keys []plan.Key) {
	for k, fronts := range servedBy {
		if have[k] == nil {
			continue
		}
		for e := range have[k].Entries {
			if _, still := f.entries[k][e]; !still {
				keys = append(keys, fronts(f.family, e))
			}
		}
	}
	slices.SortFunc(keys, func(a, b plan.Key) int { return entryOfKey(a).Compare(entryOfKey(b)) })
	return slices.Compact(keys)
}
