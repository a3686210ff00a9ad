package reconcile

import (
	"maps"
	"slices"

	"sluice/internal/plan"
)

// goOn takes up what another Loop leaves: what it told, and a plan that no rule of this Backend's is written for.
func (l *Loop) goOn(before *Loop) {
	l.notices = before.notices
	if !before.pace.opened {
		return
	}
	p := l.Planner.Plan()
	changes := plan.Changes{Node: true}
	for _, id := range slices.SortedFunc(maps.Keys(p.Ports), plan.PortID.Compare) {
		changes.Ports = append(changes.Ports, plan.Change{ID: id, New: p.Ports[id]})
	}
	l.pace.opened = true
	l.follow(p.Node, changes)
}
