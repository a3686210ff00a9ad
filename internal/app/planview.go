package app

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// planView is a plan as it is printed.
type planView struct {
	Node     nodeView      `json:"node"`
	Services []portView    `json:"servicePorts"`
	Skipped  []skippedView `json:"skipped,omitempty"`
	Problems []string      `json:"problems,omitempty"`
}

type nodeView struct {
	Name      string   `json:"name"`
	Zone      string   `json:"zone,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Pods      []string `json:"pods"`
	NodePorts []string `json:"nodePorts"`
	// ServiceCIDRs are ranges whose other addresses some modes drop.
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`
}

type portView struct {
	Service   string         `json:"service"`
	Port      string         `json:"port,omitempty"`
	Protocol  string         `json:"protocol"`
	Family    string         `json:"family"`
	Balancing string         `json:"balancing"`
	Affinity  string         `json:"affinity,omitempty"`
	Sources   []string       `json:"loadBalancerSources,omitempty"`
	Health    string         `json:"healthCheck,omitempty"`
	Frontends []frontendView `json:"frontends"`
	Routes    []routeView    `json:"routes"`
	Endpoints []endpointView `json:"endpoints,omitempty"`
}

type frontendView struct {
	Address string `json:"address"`
	Kind    string `json:"kind"`
	// HeldBy is the Service port that has it instead.
	HeldBy string `json:"heldBy,omitempty"`
}

type routeView struct {
	To         string   `json:"to"` // kinds of frontends
	Client     string   `json:"client"`
	Action     string   `json:"action"`
	Endpoints  []string `json:"endpoints,omitempty"`
	Masquerade bool     `json:"masquerade"`
}

type endpointView struct {
	Address string `json:"address"`
	Node    string `json:"node,omitempty"`
	Pod     string `json:"pod,omitempty"`
	Slice   string `json:"slice"`
	Weight  uint16 `json:"weight,omitempty"` // not there: 1
	// Cluster and Local say why it is in each list, or what left it out.
	Cluster string `json:"cluster"`
	Local   string `json:"local"`
}

type skippedView struct {
	Service string `json:"service"`
	Because string `json:"because"`
}

func (w *world) view() *planView {
	p := w.Plan()
	v := &planView{Node: viewNode(&p.Node), Services: []portView{}, Problems: []string{}}
	for _, port := range p.Sorted() {
		v.Services = append(v.Services, viewPort(port, w.Explain(port.ID)))
	}
	for name, s := range w.snapshot.Services {
		if why := plan.Skipped(s); why != "" {
			v.Skipped = append(v.Skipped, skippedView{name.String(), why})
		}
	}
	slices.SortFunc(v.Skipped, func(a, b skippedView) int { return strings.Compare(a.Service, b.Service) })
	for _, problem := range p.Problems() {
		v.Problems = append(v.Problems, problem.String())
	}
	return v
}

func viewNode(n *plan.Node) nodeView {
	v := nodeView{Name: n.Name, Zone: n.Zone, Pods: []string{}, NodePorts: []string{}}
	for _, a := range n.Addresses {
		v.Addresses = append(v.Addresses, a.String())
	}
	for _, d := range n.Detect {
		if s := viewDetector(d); s != "" && !slices.Contains(v.Pods, s) {
			v.Pods = append(v.Pods, s)
		}
	}
	for _, f := range model.Families {
		v.NodePorts = append(v.NodePorts, viewNodePorts(f, n.NodePorts[f])...)
		for _, p := range n.ServiceCIDRs[f] {
			v.ServiceCIDRs = append(v.ServiceCIDRs, p.String())
		}
	}
	return v
}

func viewDetector(d plan.Detector) string {
	switch {
	case d.CIDR.IsValid():
		return "from " + d.CIDR.String()
	case d.Wildcard:
		return "by interface " + d.Interface + "*"
	case d.Interface != "":
		return "by interface " + d.Interface
	}
	return ""
}

func viewNodePorts(f model.Family, n plan.NodePorts) (s []string) {
	if n.All {
		s = append(s, "every "+f.String()+" address")
	}
	for _, a := range n.Addresses {
		s = append(s, a.String())
	}
	if n.Loopback {
		s = append(s, "127.0.0.0/8")
	}
	if n.Proxied {
		s = append(s, relay.Loopback(f).String()+" by a proxy")
	}
	return s
}

func viewPort(p *plan.Port, considered []plan.Considered) portView {
	v := portView{
		Service: p.ID.Service.String(), Port: p.ID.Port, Protocol: p.ID.Protocol.String(), Family: p.ID.Family.String(),
		Balancing: p.Balancing.String(), Frontends: []frontendView{}, Routes: viewRoutes(p),
	}
	if p.Affinity > 0 {
		v.Affinity = p.Affinity.String()
	}
	for _, s := range p.Sources {
		v.Sources = append(v.Sources, s.String())
	}
	if h := p.HealthCheck; h != nil {
		v.Health = fmt.Sprintf("port %d, %d ready here", h.Port, h.Ready)
	}
	for _, f := range p.Frontends {
		v.Frontends = append(v.Frontends, frontendView{Address: f.String(), Kind: f.Kind.String()})
	}
	for _, l := range p.Lost {
		v.Frontends = append(v.Frontends, frontendView{l.String(), l.Kind.String(), l.Winner.String()})
	}
	for _, c := range considered {
		e := endpointView{
			Address: c.Address.String(), Node: c.Node, Pod: c.Pod, Slice: c.Slice.String(),
			Cluster: c.Cluster.String(), Local: c.OnNode.String(),
		}
		if c.Weight > 1 {
			e.Weight = c.Weight
		}
		v.Endpoints = append(v.Endpoints, e)
	}
	return v
}

// viewRoutes has a row for each kind of client, or one where all fare alike.
func viewRoutes(p *plan.Port) (rows []routeView) {
	add := func(to string, access plan.Access) {
		anyone := viewRoute(p, to, "anyone", access[plan.ClientPod])
		alike := true
		var each []routeView
		for _, c := range plan.Clients {
			row := viewRoute(p, to, c.String(), access[c])
			alike = alike && row.sameAs(anyone)
			each = append(each, row)
		}
		if alike {
			each = []routeView{anyone}
		}
		rows = append(rows, each...)
	}
	internal := func(f plan.Frontend) bool { return f.Kind == plan.ClusterIP }
	if slices.ContainsFunc(p.Frontends, internal) {
		add(plan.ClusterIP.String(), p.Internal)
	}
	if slices.ContainsFunc(p.Frontends, func(f plan.Frontend) bool { return !internal(f) }) {
		add("other frontends", p.External)
	}
	return rows
}

func viewRoute(p *plan.Port, to, client string, r plan.Route) routeView {
	v := routeView{To: to, Client: client, Action: r.Action.String(), Masquerade: r.Action == plan.Forward && r.Masquerade}
	for _, e := range p.Endpoints(r.List) {
		v.Endpoints = append(v.Endpoints, e.String())
	}
	return v
}

// sameAs reports whether another kind of client fares alike.
func (v routeView) sameAs(o routeView) bool {
	return v.Action == o.Action && v.Masquerade == o.Masquerade && slices.Equal(v.Endpoints, o.Endpoints)
}
