package reconcile

import (
	"maps"
	"slices"

	"sluice/internal/plan"
)

// Ready reports whether the planner has all that there is. It is to be called when Run has ended.
func (l *Loop) Ready() bool { return l.pace.opened }

// takeUp has all that the planner has written: another Loop filled it, and told of it.
func (l *Loop) takeUp() {
	p := l.Planner.Plan()
	changes := plan.Changes{Node: true}
	for _, id := range slices.SortedFunc(maps.Keys(p.Ports), plan.PortID.Compare) {
		changes.Ports = append(changes.Ports, plan.Change{ID: id, New: p.Ports[id]})
	}
	l.pace.opened = true
	l.follow(p.Node, changes)
}
