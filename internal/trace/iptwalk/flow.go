package iptwalk

import "net/netip"

// state is what the rules can change or ask of a packet. Equal states have the same future.
type state struct {
	src       netip.Addr
	dst       netip.AddrPort
	mark      uint32
	ctmark    uint32 // of the connection
	dnat      bool   // the destination was translated
	snat      bool   // the source was translated
	untracked bool
}

// weighted is a state and its share of all packets.
type weighted struct {
	state
	share float64
}

// flow is a set of states, each once, in the order in which they first came.
type flow struct {
	parts []weighted
	index map[state]int // only of large flows
}

// large is where a map finds a state sooner than a loop.
const large = 16

func (f *flow) add(s state, share float64) {
	if share <= 0 {
		return
	}
	if i, ok := f.find(s); ok {
		f.parts[i].share += share
		return
	}
	f.parts = append(f.parts, weighted{s, share})
	if f.index != nil {
		f.index[s] = len(f.parts) - 1
	}
}

func (f *flow) addAll(g flow) {
	for _, p := range g.parts {
		f.add(p.state, p.share)
	}
}

func (f *flow) find(s state) (int, bool) {
	if f.index == nil && len(f.parts) > large {
		f.index = make(map[state]int, 2*len(f.parts))
		for i, p := range f.parts {
			f.index[p.state] = i
		}
	}
	if f.index != nil {
		i, ok := f.index[s]
		return i, ok
	}
	for i := range f.parts {
		if f.parts[i].state == s {
			return i, true
		}
	}
	return 0, false
}

func (f flow) empty() bool { return len(f.parts) == 0 }

// total is the share of all the states together.
func (f flow) total() (sum float64) {
	for _, p := range f.parts {
		sum += p.share
	}
	return sum
}

// each is the flow with every state changed.
func (f flow) each(change func(state) state) (changed flow) {
	for _, p := range f.parts {
		changed.add(change(p.state), p.share)
	}
	return changed
}

// divide cuts the flow in two.
func (f flow) divide(first func(state) bool) (yes, no flow) {
	for _, p := range f.parts {
		if first(p.state) {
			yes.add(p.state, p.share)
		} else {
			no.add(p.state, p.share)
		}
	}
	return yes, no
}
