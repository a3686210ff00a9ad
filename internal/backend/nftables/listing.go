package nftables

import (
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// listing is the elements that a set has in the kernel, as the messages that tell of them: a set may have as many as
// there are endpoints.
type listing struct {
	set      setID
	messages []wire.Elements
	err      error // of elements
}

// add keeps a message.
func (l *listing) add(data []byte) error {
	m, err := wire.DecodeElements(append([]byte(nil), data...))
	l.messages = append(l.messages, m)
	return err
}

func (l *listing) clear() { l.messages = l.messages[:0] }

// elements yields the elements as a Ruleset has them, until the error. The element is the same one each time.
func (l *listing) elements(yield func(*nft.Element) bool) {
	if def := &sets[l.set]; def.Interval && len(def.Key) == 1 {
		l.ranges(yield)
		return
	}
	for e := range l.each {
		if sets[l.set].Interval && e.End.IsZero() {
			e.End = e.Key
		}
		if !yield(&e.Element) {
			return
		}
	}
}

// ranges yields the ranges of one field, which the kernel tells by their ends.
func (l *listing) ranges(yield func(*nft.Element) bool) {
	var all []wire.Element
	for e := range l.each {
		all = append(all, *e)
	}
	for _, e := range wire.Ranges(&sets[l.set], all) {
		if e.End.IsZero() {
			e.End = e.Key
		}
		if !yield(&e) {
			return
		}
	}
}

func (l *listing) each(yield func(*wire.Element) bool) {
	for _, m := range l.messages {
		for e, err := range m.All() {
			if err != nil {
				l.err = err
				return
			}
			if !yield(e) {
				return
			}
		}
	}
}
