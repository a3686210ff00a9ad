package kube

import (
	"reflect"

	"sluice/internal/model"
)

// table is what is known of the objects of one kind, and which of them changed since that was last taken.
type table[V any] struct {
	known, changed map[model.Name]*V
}

// objects is a table of any kind.
type objects interface {
	// set takes a *V, or nil for an object that is gone or means nothing, and reports whether that is a change.
	set(model.Name, any) bool
	len() int
	names(yield func(model.Name) bool)
	expect(n int)
}

func newTable[V any]() *table[V] {
	return &table[V]{known: map[model.Name]*V{}, changed: map[model.Name]*V{}}
}

func (t *table[V]) set(name model.Name, value any) bool {
	now, _ := value.(*V)
	was := t.known[name]
	switch {
	case now == nil && was == nil:
		return false
	case now == nil:
		delete(t.known, name)
	case was != nil && reflect.DeepEqual(was, now):
		return false // and the old one stays: the same pointer means the same object
	default:
		t.known[name] = now
	}
	t.changed[name] = now
	return true
}

func (t *table[V]) len() int { return len(t.known) }

func (t *table[V]) names(yield func(model.Name) bool) {
	for name := range t.known {
		if !yield(name) {
			return
		}
	}
}

// expect makes room for n objects, if there are none yet: to grow as they come would cost as much again.
func (t *table[V]) expect(n int) {
	if len(t.known)+len(t.changed) == 0 {
		t.known, t.changed = make(map[model.Name]*V, n), make(map[model.Name]*V, n)
	}
}

// take is what changed since the last take.
func (t *table[V]) take() map[model.Name]*V {
	changed := t.changed
	t.changed = map[model.Name]*V{}
	return changed
}

// byName is for kinds whose objects are in no namespace.
func byName[V any](in map[model.Name]*V) map[string]*V {
	out := make(map[string]*V, len(in))
	for name, v := range in {
		out[name.Name] = v
	}
	return out
}
