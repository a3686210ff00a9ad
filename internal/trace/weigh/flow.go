package weigh

// Flow is a set of states, each once, in the order in which they first came. A state is what rules can change or ask of
// a packet: equal states have the same future. The zero value is empty.
type Flow[S comparable] struct {
	parts []Part[S]
	index map[S]int // only of large flows
}

// Part is a state and its share of all packets.
type Part[S comparable] struct {
	State S
	Share float64
}

// Whole is the flow of packets that are all in one state.
func Whole[S comparable](s S) Flow[S] { return Flow[S]{parts: []Part[S]{{s, 1}}} }

// large is where a map finds a state sooner than a loop.
const large = 16

// Add adds packets in a state.
func (f *Flow[S]) Add(s S, share float64) {
	if share <= 0 {
		return
	}
	if i, ok := f.find(s); ok {
		f.parts[i].Share += share
		return
	}
	f.parts = append(f.parts, Part[S]{s, share})
	if f.index != nil {
		f.index[s] = len(f.parts) - 1
	}
}

// AddAll adds another flow.
func (f *Flow[S]) AddAll(g Flow[S]) {
	for _, p := range g.parts {
		f.Add(p.State, p.Share)
	}
}

func (f *Flow[S]) find(s S) (int, bool) {
	if f.index == nil && len(f.parts) > large {
		f.index = make(map[S]int, 2*len(f.parts))
		for i, p := range f.parts {
			f.index[p.State] = i
		}
	}
	if f.index != nil {
		i, ok := f.index[s]
		return i, ok
	}
	for i := range f.parts {
		if f.parts[i].State == s {
			return i, true
		}
	}
	return 0, false
}

// Parts are the states and their shares, for reading only.
func (f Flow[S]) Parts() []Part[S] { return f.parts }

// Empty reports whether there are no packets.
func (f Flow[S]) Empty() bool { return len(f.parts) == 0 }

// Total is the share of all the states together.
func (f Flow[S]) Total() (sum float64) {
	for _, p := range f.parts {
		sum += p.Share
	}
	return sum
}

// Each is the flow with every state changed.
func (f Flow[S]) Each(change func(S) S) (changed Flow[S]) {
	for _, p := range f.parts {
		changed.Add(change(p.State), p.Share)
	}
	return changed
}

// Divide cuts the flow in two.
func (f Flow[S]) Divide(first func(S) bool) (yes, no Flow[S]) {
	for _, p := range f.parts {
		if first(p.State) {
			yes.Add(p.State, p.Share)
		} else {
			no.Add(p.State, p.Share)
		}
	}
	return yes, no
}
