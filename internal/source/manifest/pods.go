package manifest

import (
	"reflect"
	"slices"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// podIndex finds Pods by namespace and one label.
type podIndex map[podLabel][]*convert.Pod

type podLabel struct {
	namespace, key, value string
}

func (x podIndex) add(p *convert.Pod) {
	for k, v := range p.Labels {
		at := podLabel{p.Name.Namespace, k, v}
		x[at] = append(x[at], p)
	}
}

// matching is the Pods of a Service, sorted by name. It looks through the Pods of its rarest label alone.
func (x podIndex) matching(s *convert.Selector) []*convert.Pod {
	var rarest []*convert.Pod
	chosen := false
	for k, v := range s.Labels {
		if pods := x[podLabel{s.Service.Namespace, k, v}]; !chosen || len(pods) < len(rarest) {
			rarest, chosen = pods, true
		}
	}
	var out []*convert.Pod
	for _, p := range rarest {
		if s.Matches(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *convert.Pod) int { return a.Name.Compare(b.Name) })
	return out
}

// podMemo keeps the Slices made for each Service until its selector or its Pods change.
type podMemo map[model.Name]*madeSlices

type madeSlices struct {
	selector *convert.Selector
	pods     []*convert.Pod
	slices   []*model.Slice
	problems []convert.Problem
}

func (m podMemo) slices(s *convert.Selector, pods []*convert.Pod) ([]*model.Slice, []convert.Problem) {
	made := m[s.Service]
	if made == nil || !reflect.DeepEqual(made.selector, s) || !slices.Equal(made.pods, pods) {
		made = &madeSlices{selector: s, pods: pods}
		made.slices, made.problems = convert.PodSlices(s, pods)
		m[s.Service] = made
	}
	return made.slices, made.problems
}
