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
	slice model.Name
	local bool
	// weight is the Service's for it.
	weight uint16
	// cluster and inLocal say whether it is in the list of that name, or what left it out.
	cluster, inLocal Reason
}

// fallback is an endpoint that is only used when no ready one is: it still serves while it terminates.
func (c *candidate) fallback() bool { return !c.Ready && c.Serving && c.Terminating }

// candidates collects what the Service's Slices offer to port. They are joined by the port's name and protocol,
// never by position or number. The result is sorted by address; an endpoint offered twice is there twice, the better
// one first.
func candidates(svc *model.Service, id PortID, all []*model.Slice, node string) (cs []candidate) {
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
				local := e.Node != "" && e.Node == node
				cs = append(cs, candidate{
					Endpoint: e, addr: netip.AddrPortFrom(e.Address, p.Port), slice: s.Name, local: local, weight: svc.WeightOf(e),
				})
			}
		}
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return cmp.Or(a.addr.Compare(b.addr), better(&a, &b)) })
	return cs
}

// better orders two entries for one address: an endpoint that moves between Slices is seen in both for a moment,
// with old conditions in one of them.
func better(a, b *candidate) int {
	return cmp.Or(
		boolCompare(b.Ready, a.Ready),
		boolCompare(a.Terminating, b.Terminating),
		boolCompare(b.Serving, a.Serving),
		boolCompare(b.local, a.local),
		a.slice.Compare(b.slice),
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
	usable := func(c *candidate) bool { return c.cluster != DuplicateEndpoint && (c.Ready || c.fallback()) }
	ready := func(c *candidate) bool { return c.cluster != DuplicateEndpoint && c.Ready }
	localReady := func(c *candidate) bool { return c.local && ready(c) }
	s.any = containsFunc(cs, usable)
	someReady, someLocalReady := containsFunc(cs, ready), containsFunc(cs, localReady)
	hint := hintMode(cs, n)
	for i := range cs {
		c := &cs[i]
		if c.cluster == DuplicateEndpoint {
			continue
		}
		c.cluster = clusterReason(c, someReady, hint, n)
		c.inLocal = localReason(c, someLocalReady)
		e := Endpoint{AddrPort: c.addr, Local: c.local, Weight: c.weight}
		if c.cluster == Used {
			s.cluster = append(s.cluster, e)
		}
		if c.inLocal == Used {
			s.local = append(s.local, e)
		}
		if c.cluster != Used && c.inLocal != Used && (c.Ready || c.Serving) {
			s.draining = append(s.draining, e)
		}
	}
	return s
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
	case hint == hintNode && !slices.Contains(c.NodeHints, n.Name):
		return HintedToOtherNode
	case hint == hintZone && !slices.Contains(c.ZoneHints, n.Zone):
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
	hinted := func(hints func(*candidate) []string, us string) bool {
		found, complete := false, true
		for i := range cs {
			if c := &cs[i]; c.Ready && c.cluster != DuplicateEndpoint {
				found = found || slices.Contains(hints(c), us)
				complete = complete && len(hints(c)) > 0
			}
		}
		return found && complete
	}
	switch {
	case hinted(func(c *candidate) []string { return c.NodeHints }, n.Name):
		return hintNode
	case n.Zone != "" && hinted(func(c *candidate) []string { return c.ZoneHints }, n.Zone):
		return hintZone
	}
	return hintNone
}

func containsFunc(cs []candidate, f func(*candidate) bool) bool {
	for i := range cs {
		if f(&cs[i]) {
			return true
		}
	}
	return false
}
