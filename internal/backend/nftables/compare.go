package nftables

import (
	"hash/maphash"
	"iter"

	"sluice/internal/nft"
)

// compare collects what makes a set of the kernel hold what c says, and counts in refs what ports share. It keeps a few
// bytes of each element, not the elements: a set may have as many as there are endpoints.
func (d *delta) compare(c *contents, set setID, refs references, have iter.Seq[*nft.Element]) {
	m := matcher{seed: maphash.MakeSeed(), missing: make(map[uint64]uint64, c.count[set])}
	for e := range c.elements(set, refs) {
		key, rest := m.hash(set, e)
		m.missing[key] = rest
	}
	for e := range have {
		key, rest := m.hash(set, e)
		switch want, ok := m.missing[key]; {
		case !ok:
			d.take(set, e)
		case want == rest:
			delete(m.missing, key)
		case d.tooMany(1):
		default:
			d.remove[set] = append(d.remove[set], *e)
			d.changed++
		}
	}
	if d.tooMany(len(m.missing)) || len(m.missing) == 0 {
		return
	}
	for e := range c.elements(set, references{}) {
		if key, _ := m.hash(set, e); m.has(key) {
			d.add[set] = append(d.add[set], *e)
		}
	}
}

// tooMany reports whether so many differences more are more than somebody wants to know of.
func (d *delta) tooMany(more int) bool {
	d.over = d.over || d.most > 0 && d.size()+more > d.most
	return d.over
}

// take collects an element that goes, at once or, if packets on their way may be led to it, last.
func (d *delta) take(set setID, e *nft.Element) {
	switch {
	case d.tooMany(1):
	case set.ofIPv4() == setEndpoints, set.ofIPv4() == setAffineSlots, set.ofIPv4() == setMarks, set == setRoundRobin, set == setBuckets:
		d.last[set] = append(d.last[set], *e)
	default:
		d.remove[set] = append(d.remove[set], *e)
	}
}

// matcher knows the elements that are wanted and were not met, by hashes of the key and of the rest.
type matcher struct {
	seed    maphash.Seed
	missing map[uint64]uint64
}

func (m *matcher) has(key uint64) bool {
	_, ok := m.missing[key]
	return ok
}

// hash leaves out what the kernel counts, and the comment of what ports share, which is of the one that came first.
func (m *matcher) hash(set setID, e *nft.Element) (key, rest uint64) {
	value := nft.Element{Data: e.Data, Verdict: e.Verdict, Comment: e.Comment}
	if isShared(set) {
		value.Comment = ""
	}
	return maphash.Comparable(m.seed, [2]nft.Value{e.Key, e.End}), maphash.Comparable(m.seed, value)
}
