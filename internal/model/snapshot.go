package model

import (
	"maps"
	"reflect"
)

// Snapshot is everything a source knows at one moment. The maps belong to the Snapshot; the objects are shared and
// never changed.
type Snapshot struct {
	Services     map[Name]*Service
	Slices       map[Name]*Slice
	Nodes        map[string]*Node
	ServiceCIDRs map[string]*ServiceCIDR
}

// NewSnapshot is an empty Snapshot.
func NewSnapshot() *Snapshot {
	return &Snapshot{
		Services: map[Name]*Service{}, Slices: map[Name]*Slice{},
		Nodes: map[string]*Node{}, ServiceCIDRs: map[string]*ServiceCIDR{},
	}
}

// Delta is what changed between two Snapshots: the new object, or nil for one that is gone.
type Delta struct {
	Services     map[Name]*Service
	Slices       map[Name]*Slice
	Nodes        map[string]*Node
	ServiceCIDRs map[string]*ServiceCIDR
}

// Apply changes the Snapshot by d.
func (s *Snapshot) Apply(d Delta) {
	s.Services = apply(s.Services, d.Services)
	s.Slices = apply(s.Slices, d.Slices)
	s.Nodes = apply(s.Nodes, d.Nodes)
	s.ServiceCIDRs = apply(s.ServiceCIDRs, d.ServiceCIDRs)
}

// Clone copies the maps and shares the objects.
func (s *Snapshot) Clone() *Snapshot {
	return &Snapshot{
		Services: maps.Clone(s.Services), Slices: maps.Clone(s.Slices),
		Nodes: maps.Clone(s.Nodes), ServiceCIDRs: maps.Clone(s.ServiceCIDRs),
	}
}

// Diff is the Delta that turns old into new. Objects with equal content count as unchanged.
func Diff(old, new *Snapshot) Delta {
	return Delta{
		Services:     diff(old.Services, new.Services),
		Slices:       diff(old.Slices, new.Slices),
		Nodes:        diff(old.Nodes, new.Nodes),
		ServiceCIDRs: diff(old.ServiceCIDRs, new.ServiceCIDRs),
	}
}

func apply[K comparable, V any](to, changed map[K]*V) map[K]*V {
	if len(to) == 0 && len(changed) > 0 {
		to = make(map[K]*V, len(changed)) // to grow as objects come would cost as much again
	}
	for k, v := range changed {
		if v == nil {
			delete(to, k)
		} else {
			to[k] = v
		}
	}
	return to
}

func diff[K comparable, V any](old, new map[K]*V) map[K]*V {
	changed := map[K]*V{}
	kept := 0
	for k, v := range new {
		was, ok := old[k]
		if ok {
			kept++
		}
		if !ok || (was != v && !reflect.DeepEqual(was, v)) {
			changed[k] = v
		}
	}
	if kept == len(old) {
		return changed // nothing is gone
	}
	for k := range old {
		if _, ok := new[k]; !ok {
			changed[k] = nil
		}
	}
	return changed
}
