package plan

import (
	"net/netip"

	"sluice/internal/model"
)

// Reason is why an endpoint is in a list, or the rule that left it out.
type Reason uint8

// The reasons.
const (
	Used                Reason = iota
	DuplicateEndpoint          // another Slice has it too, in a better state
	NotReadyEndpoint           // conditions: ready is false
	NotServingEndpoint         // conditions: serving is false
	TerminatingEndpoint        // terminating, and ready ones are there
	HintedToOtherNode          // hints send this node elsewhere
	HintedToOtherZone          // hints send this zone elsewhere
	OnOtherNode                // the list is of this node only
)

// String is the reason in words.
func (r Reason) String() string {
	return [...]string{
		"used",
		"a second entry for the same address",
		"not ready",
		"not serving",
		"terminating, and there are ready endpoints",
		"its hints name other nodes, and those of another endpoint name this one",
		"its hints name other zones, and those of another endpoint name this one",
		"not on this node",
	}[r]
}

// Considered is an endpoint that a Slice offers to a Service port, and what became of it.
type Considered struct {
	Address netip.AddrPort
	Pod     string
	Node    string
	Slice   model.Name
	Local   bool
	Weight  uint16
	// Cluster and OnNode are the reasons for the two lists of a [Port].
	Cluster, OnNode Reason
}

// Explain tells, for one Service port, every endpoint that was considered and what left it out. A port that is not
// in the Plan has none.
func (p *Planner) Explain(id PortID) (all []Considered) {
	if _, ok := p.plan.Ports[id]; !ok {
		return nil
	}
	cs := appendCandidates(nil, p.snap.Services[id.Service], id, p.slices[id.Service], p.plan.Node.Name)
	choose(cs, &p.plan.Node)
	for _, c := range cs {
		all = append(all, Considered{
			Address: c.addr, Pod: c.Pod, Node: c.Node, Slice: c.slice.Name, Local: c.local, Weight: c.weight,
			Cluster: c.cluster, OnNode: c.inLocal,
		})
	}
	return all
}

// NoClusterIP is why a Service is not proxied that says nothing against it.
const NoClusterIP = "it has no cluster IP"

// Skipped says why a Service is not proxied at all; empty if it is.
func Skipped(s *model.Service) string {
	switch {
	case s.OtherProxy:
		return "the label service.kubernetes.io/service-proxy-name hands it to another proxy"
	case s.HeadlessLabel:
		return "the label service.kubernetes.io/headless takes it from the proxy"
	case s.Type == model.ExternalName:
		return "type ExternalName is a matter of DNS"
	case s.Headless:
		return "it is headless (clusterIP: None)"
	case len(s.ClusterIPs) == 0:
		return NoClusterIP
	}
	return ""
}
