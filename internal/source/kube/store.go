package kube

import (
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	"sluice/internal/model"
)

// store is what a reflector writes the objects of one kind to.
type store struct {
	kind   *kind
	ledger *ledger // whose lock guards all that follows
	link   *kindLink
	table  objects
	// told are the problems of the objects that have some.
	told map[model.Name][]string
	// synced is that there was a list; refused is that the server refused the last one.
	synced, refused bool
}

var _ cache.TransformingStore = (*store)(nil)

// Transformer makes items of the objects that a list as a stream holds until it is complete.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.kind.itemOf(object) }
}

// Add takes an object that is new.
func (s *store) Add(object any) error { return s.change(object, s.set) }

// Update takes an object that changed.
func (s *store) Update(object any) error { return s.change(object, s.set) }

// Delete takes an object that is gone.
func (s *store) Delete(object any) error {
	return s.change(object, func(it *item) { s.remove(it.name) })
}

// change does what an object asks for, with the lock.
func (s *store) change(object any, do func(*item)) error {
	it, err := s.kind.itemOf(object)
	if err != nil {
		return err
	}
	defer s.done()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	do(it)
	return nil
}

// Replace takes all objects that there are. What is not among them is gone.
func (s *store) Replace(list []any, _ string) error {
	defer s.done()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.table.expect(len(list))
	there := make(map[model.Name]struct{}, len(list))
	for _, object := range list {
		it, ok := object.(*item)
		if !ok {
			return fmt.Errorf("replace all %s: %T is no item", s.kind.name, object)
		}
		there[it.name] = struct{}{}
		s.set(it)
	}
	s.removeExcept(there)
	s.synced = true
	return nil
}

// Resync does nothing: the receiver knows all there is.
func (s *store) Resync() error { return nil }

// failed takes the reason why there is no list.
func (s *store) failed(err error) {
	defer s.done()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.refused = faultOf(err) == refused
}

// done tells others what changed. It is called without the lock.
func (s *store) done() {
	s.ledger.mu.Lock()
	n, synced := s.table.len(), s.synced
	s.ledger.mu.Unlock()
	s.link.holds(n, synced)
	s.ledger.ring()
}

func (s *store) set(it *item) {
	changed := s.table.set(it.name, it.value)
	s.tell(it.name, it.problems)
	slice, ok := it.value.(*model.Slice)
	if ok && changed && it.trigger.After(s.ledger.start) && len(s.ledger.triggers) < maxTriggers {
		s.ledger.triggers = append(s.ledger.triggers, Trigger{Service: slice.Service, Family: slice.Family, At: it.trigger})
	}
}

// maxTriggers bounds the triggers that wait for a receiver that is slow. Those beyond are not told.
const maxTriggers = 10_000

func (s *store) remove(name model.Name) {
	s.table.set(name, nil)
	s.tell(name, nil)
}

func (s *store) removeExcept(there map[model.Name]struct{}) {
	var gone []model.Name
	for name := range s.table.names {
		if _, ok := there[name]; !ok {
			gone = append(gone, name)
		}
	}
	for name := range s.told { // some mean nothing, so that the table does not have them
		if _, ok := there[name]; !ok {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		s.remove(name)
	}
}

func (s *store) tell(name model.Name, problems []string) {
	if slices.Equal(s.told[name], problems) {
		return
	}
	if len(problems) == 0 {
		delete(s.told, name)
	} else {
		s.told[name] = problems
	}
	s.ledger.problems[Object{Kind: s.kind.name, Name: name}] = problems
}
