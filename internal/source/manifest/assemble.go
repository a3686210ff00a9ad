package manifest

import (
	"maps"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// snapshot is what the objects mean together.
func (a *assembly) snapshot(memo podMemo) *model.Snapshot {
	s := model.NewSnapshot()
	sliced := map[model.Name]bool{}
	for _, o := range a.objects {
		switch v := o.value.(type) {
		case service:
			s.Services[v.Service.Name] = v.Service
		case slice:
			sliced[v.owner] = true
			if v.Slice != nil {
				s.Slices[v.Slice.Name] = v.Slice
			}
		case *model.Node:
			s.Nodes[v.Name] = v
		case *model.ServiceCIDR:
			s.ServiceCIDRs[v.Name] = v
		}
	}
	pods := a.podIndex()
	for _, o := range a.objects {
		v, ok := o.value.(service)
		if !ok || sliced[v.Service.Name] {
			continue
		}
		for _, slice := range a.derivedSlices(o, v.selector, pods, memo) {
			s.Slices[slice.Name] = slice
		}
	}
	a.tellUnjoined(s, sliced)
	maps.DeleteFunc(memo, func(name model.Name, _ *madeSlices) bool { return s.Services[name] == nil })
	return s
}

// derivedSlices are those of a Service without slices of its own: from its Endpoints, or else from its Pods.
func (a *assembly) derivedSlices(o origin, s *convert.Selector, pods podIndex, memo podMemo) []*model.Slice {
	if legacy, ok := a.objects[id{kind: "Endpoints", name: o.id.name}]; ok {
		if slices, ok := legacy.value.(endpoints); ok {
			return slices
		}
	}
	if s == nil {
		return nil
	}
	slices, problems := memo.slices(s, pods.matching(s))
	for _, p := range problems {
		a.tell(o, p)
	}
	return slices
}

func (a *assembly) podIndex() podIndex {
	pods := podIndex{}
	for _, o := range a.objects {
		if p, ok := o.value.(*convert.Pod); ok {
			pods.add(p)
		}
	}
	return pods
}
