package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// candidate is an endpoint that a Slice offers to a Service port.
type candidate struct {
	*model.Endpoint
	addr  netip.AddrPort
	slice *model.Slice
	local bool
	// weight is the Service's for it.
	weight uint16
	// cluster and inLocal say whether it is in the list of that name, or what left it out.
	cluster, inLocal Reason
}

// single reports whether it stands for its address: it is the first entry for it.
func (c *candidate) single() bool { return c.cluster != DuplicateEndpoint }

// fallback is an endpoint that is only used when no ready one is: it still serves while it terminates.
func (c *candidate) fallback() bool { return !c.Ready && c.Serving && c.Terminating }

func (c *candidate) draining() bool {
	return c.single() && c.cluster != Used && c.inLocal != Used && (c.Ready || c.Serving)
}

// appendCandidates adds what the Slices of Service svc offer to port id. They are joined by the port's name and
// protocol, never by position or number. The result is sorted by address; an endpoint offered twice is there twice,
// the better one first.
func appendCandidates(cs []candidate, svc *model.Service, id PortID, all []*model.Slice, node string) []candidate {
	for _, s := range all {
		if s.Family != id.Family {
			continue
		}
		for _, p := range s.Ports {
			if p.Name != id.Port || p.Protocol != id.Protocol {
				continue
			}
			for i := range s.Endpoints {
				e := &s.Endpoints[i]
				cs = append(cs, candidate{
					Endpoint: e, addr: netip.AddrPortFrom(e.Address, p.Port), slice: s,
					local: e.Node != "" && e.Node == node, weight: svc.WeightOf(e),
				})
			}
		}
	}
	slices.SortStableFunc(cs, compareCandidates)
	return cs
}

func compareCandidates(a, b candidate) int {
	if c := a.addr.Compare(b.addr); c != 0 {
		return c
	}
	return better(&a, &b)
}

// better orders two entries for one address: an endpoint that moves between Slices is seen in both for a moment,
// with old conditions in one of them.
func better(a, b *candidate) int {
	return cmp.Or(
		boolCompare(b.Ready, a.Ready),
		boolCompare(a.Terminating, b.Terminating),
		boolCompare(b.Serving, a.Serving),
		boolCompare(b.local, a.local),
		a.slice.Name.Compare(b.slice.Name),
	)
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// selection is the outcome for one Service port.
type selection struct {
	cluster, local, draining []Endpoint
	// any is whether some node has an endpoint that can be used.
	any bool
}

// choose fills in why each candidate is or is not in each list, and returns the lists.
func choose(cs []candidate, n *Node) (s selection) {
	markDuplicates(cs)
	someReady, someLocalReady := false, false
	for i := range cs {
		if c := &cs[i]; c.single() {
			s.any = s.any || c.Ready || c.fallback()
			someReady = someReady || c.Ready
			someLocalReady = someLocalReady || c.Ready && c.local
		}
	}
	hint := hintMode(cs, n)
	for i := range cs {
		if c := &cs[i]; c.single() {
			c.cluster = clusterReason(c, someReady, hint, n)
			c.inLocal = localReason(c, someLocalReady)
		}
	}
	s.lists(cs)
	return s
}

// lists makes the lists, each no longer than it has to be. Where all that is used is local, one does for two.
func (s *selection) lists(cs []candidate) {
	cluster, local, draining, same := 0, 0, 0, true
	for i := range cs {
		c := &cs[i]
		cluster += count(c.cluster == Used)
		local += count(c.inLocal == Used)
		draining += count(c.draining())
		same = same && (c.cluster == Used) == (c.inLocal == Used)
	}
	s.cluster = collect(cs, cluster, func(c *candidate) bool { return c.cluster == Used })
	if s.local = s.cluster; !same {
		s.local = collect(cs, local, func(c *candidate) bool { return c.inLocal == Used })
	}
	s.draining = collect(cs, draining, (*candidate).draining)
}

// collect makes a list of n candidates.
func collect(cs []candidate, n int, in func(*candidate) bool) []Endpoint {
	if n == 0 {
		return nil
	}
	list := make([]Endpoint, 0, n)
	for i := range cs {
		if c := &cs[i]; in(c) {
			list = append(list, Endpoint{AddrPort: c.addr, Local: c.local, Weight: c.weight})
		}
	}
	return list
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// readyHere counts the addresses of ready endpoints on this node, over all ports of a Service. Those that only serve
// while they terminate do not count, so that load balancers leave in time.
func (p *Planner) readyHere(s *model.Service, f model.Family) int {
	var ready []netip.Addr
	for i := range s.Ports {
		cs := appendCandidates(nil, s, portID(s, i, f), p.slices[s.Name], p.plan.Node.Name)
		for i := range cs {
			if c := &cs[i]; c.local && c.Ready {
				ready = append(ready, c.Address)
			}
		}
	}
	slices.SortFunc(ready, netip.Addr.Compare)
	return len(slices.Compact(ready))
}

func markDuplicates(cs []candidate) {
	for i := 1; i < len(cs); i++ {
		if cs[i].addr == cs[i-1].addr {
			cs[i].cluster, cs[i].inLocal = DuplicateEndpoint, DuplicateEndpoint
		}
	}
}

// clusterReason decides on the list of all nodes. Ready endpoints come first, narrowed by hints; only without any,
// those that still serve while they terminate.
func clusterReason(c *candidate, someReady bool, hint hint, n *Node) Reason {
	switch {
	case !c.Ready && someReady && c.fallback():
		return TerminatingEndpoint
	case !c.Ready:
		return unreadyReason(c)
	case hint == hintNode && !slices.Contains(c.NodeHints(), n.Name):
		return HintedToOtherNode
	case hint == hintZone && !slices.Contains(c.ZoneHints(), n.Zone):
		return HintedToOtherZone
	}
	return Used
}

// localReason decides on the list of this node, which hints do not narrow.
func localReason(c *candidate, someReady bool) Reason {
	switch {
	case !c.local:
		return OnOtherNode
	case !c.Ready && someReady && c.fallback():
		return TerminatingEndpoint
	case !c.Ready:
		return unreadyReason(c)
	}
	return Used
}

func unreadyReason(c *candidate) Reason {
	switch {
	case c.fallback():
		return Used
	case !c.Serving:
		return NotServingEndpoint
	}
	return NotReadyEndpoint
}

// hint is which hints on endpoints count.
type hint uint8

const (
	hintNone hint = iota
	hintNode
	hintZone
)

// hintMode looks at the ready endpoints only. Hints of a kind count when every one has some and one means us; so a
// controller that is half through its updates sends nobody astray.
func hintMode(cs []candidate, n *Node) hint {
	switch {
	case hinted(cs, n.Name, (*model.Endpoint).NodeHints):
		return hintNode
	case n.Zone != "" && hinted(cs, n.Zone, (*model.Endpoint).ZoneHints):
		return hintZone
	}
	return hintNone
}

func hinted(cs []candidate, us string, hints func(*model.Endpoint) []string) bool {
	found := false
	for i := range cs {
		if c := &cs[i]; c.Ready && c.single() {
			if len(hints(c.Endpoint)) == 0 {
				return false
			}
			found = found || slices.Contains(hints(c.Endpoint), us)
		}
	}
	return found
}
