package flows

import (
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

var (
	statsd = model.Name{Namespace: "shop", Name: "statsd"}
	pods   = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	byCIDR = plan.Config{NodeName: "node-a", ClusterCIDRs: pods, LocalhostNodePorts: true}
	nodes  = map[string]*model.Node{"node-a": {Name: "node-a", InternalIPs: []netip.Addr{netip.MustParseAddr("192.168.10.11")}}}
)

// statsdService answers at 10.96.30.14:8125, at 192.0.2.5:8125 and at node port 30160.
func statsdService(edit ...func(*model.Service)) *model.Service {
	s := &model.Service{
		Name: statsd, Type: model.LoadBalancer,
		ClusterIPs:      []netip.Addr{netip.MustParseAddr("10.96.30.14")},
		LoadBalancerIPs: []netip.Addr{netip.MustParseAddr("192.0.2.5")},
		Ports:           []model.ServicePort{{Protocol: model.UDP, Port: 8125, NodePort: 30160}},
	}
	for _, f := range edit {
		f(s)
	}
	return s
}

func external(s *model.Service) { s.ExternalPolicy = model.PolicyLocal }
func internal(s *model.Service) { s.InternalPolicy = model.PolicyLocal }
func ranges(s *model.Service) {
	s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
}

// endpoints are written "ADDRESS NODE STATES", states of r(eady), s(erving), t(erminating).
type endpoints [][3]string

func snapshot(s *model.Service, es endpoints) *model.Snapshot {
	snap := model.NewSnapshot()
	snap.Nodes = nodes
	if s == nil {
		return snap
	}
	slice := &model.Slice{Name: s.Name, Service: s.Name, Ports: []model.SlicePort{{Protocol: model.UDP, Port: 8125}}}
	for _, e := range es {
		has := func(r rune) bool {
			for _, c := range e[2] {
				if c == r {
					return true
				}
			}
			return false
		}
		slice.Endpoints = append(slice.Endpoints, model.Endpoint{
			Address: netip.MustParseAddr(e[0]), Node: e[1], Ready: has('r'), Serving: has('s'), Terminating: has('t'),
		})
	}
	snap.Services[s.Name], snap.Slices[s.Name] = s, slice
	return snap
}

func flow(client, to, server string) Flow {
	return Flow{netip.MustParseAddrPort(client), netip.MustParseAddrPort(to), netip.MustParseAddrPort(server)}
}

const (
	pod     = "10.244.1.50:40001"
	host    = "192.168.10.11:40001"
	outside = "203.0.113.77:40001"
	vip     = "10.96.30.14:8125"
	lbIP    = "192.0.2.5:8125"
	np      = "192.168.10.11:30160"
	here    = "10.244.1.94:8125"
	there   = "10.244.2.94:8125"
	gone    = "10.244.2.99:8125"
)

var both = endpoints{{"10.244.1.94", "node-a", "rs"}, {"10.244.2.94", "node-b", "rs"}}

func TestStale(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg     plan.Config
		service *model.Service
		endpoints
		flow Flow
		want Reason
	}{
		"cluster IP to a ready endpoint":          {byCIDR, statsdService(), both, flow(pod, vip, there), Fresh},
		"cluster IP to an endpoint that is gone":  {byCIDR, statsdService(), both, flow(pod, vip, gone), EndpointGone},
		"cluster IP to another port of it":        {byCIDR, statsdService(), both, flow(pod, vip, "10.244.2.94:8126"), EndpointGone},
		"node port to a ready endpoint":           {byCIDR, statsdService(), both, flow(outside, np, there), Fresh},
		"node port to an endpoint that is gone":   {byCIDR, statsdService(), both, flow(outside, np, gone), EndpointGone},
		"node port on localhost":                  {byCIDR, statsdService(), both, flow("127.0.0.1:40001", "127.0.0.1:30160", gone), EndpointGone},
		"load balancer IP to one that is gone":    {byCIDR, statsdService(), both, flow(outside, lbIP, gone), EndpointGone},
		"that port number at a foreign address":   {byCIDR, statsdService(), both, flow(outside, "198.51.100.9:30160", gone), Fresh},
		"another port of the node":                {byCIDR, statsdService(), both, flow(outside, "192.168.10.11:30161", gone), Fresh},
		"another port of the cluster IP":          {byCIDR, statsdService(), both, flow(pod, "10.96.30.14:8126", gone), Fresh},
		"straight to an endpoint":                 {byCIDR, statsdService(), both, flow(pod, gone, gone), Fresh},
		"began before the first endpoint":         {byCIDR, statsdService(), both, flow(pod, vip, vip), NeverTranslated},
		"began before the first endpoint, by np":  {byCIDR, statsdService(), both, flow(outside, np, np), NeverTranslated},
		"began untranslated, still no endpoint":   {byCIDR, statsdService(), nil, flow(pod, vip, vip), Fresh},
		"no endpoints left":                       {byCIDR, statsdService(), nil, flow(pod, vip, there), EndpointGone},
		"no endpoints left, by node port":         {byCIDR, statsdService(), nil, flow(outside, np, there), EndpointGone},
		"the frontend is the endpoint":            {byCIDR, statsdService(), endpoints{{"10.96.30.14", "node-a", "rs"}}, flow(pod, vip, vip), Fresh},
		"terminating, still serving":              {byCIDR, statsdService(), endpoints{{"10.244.1.94", "node-a", "rs"}, {"10.244.2.94", "node-b", "st"}}, flow(pod, vip, there), Fresh},
		"terminating, serving no more":            {byCIDR, statsdService(), endpoints{{"10.244.1.94", "node-a", "rs"}, {"10.244.2.94", "node-b", "t"}}, flow(pod, vip, there), EndpointGone},
		"external Local, outside client, remote":  {byCIDR, statsdService(external), both, flow(outside, np, there), EndpointGone},
		"external Local, outside client, local":   {byCIDR, statsdService(external), both, flow(outside, np, here), Fresh},
		"external Local, pod, remote":             {byCIDR, statsdService(external), both, flow(pod, np, there), Fresh},
		"external Local, this node, remote":       {byCIDR, statsdService(external), both, flow(host, np, there), Fresh},
		"external Local, none here":               {byCIDR, statsdService(external), both[1:], flow(outside, np, there), EndpointGone},
		"external Local, local one terminating":   {byCIDR, statsdService(external), endpoints{{"10.244.1.94", "node-a", "st"}, both[1]}, flow(outside, np, here), Fresh},
		"internal Local, remote":                  {byCIDR, statsdService(internal), both, flow(pod, vip, there), EndpointGone},
		"pods told by interface may be inside":    {plan.Config{NodeName: "node-a", DetectLocal: plan.DetectInterfaceNamePrefix, InterfaceNamePrefix: "veth"}, statsdService(external), both, flow(pod, np, there), Fresh},
		"source no longer allowed":                {byCIDR, statsdService(ranges), both, flow("198.51.100.1:40001", lbIP, there), NotAllowed},
		"source allowed":                          {byCIDR, statsdService(ranges), both, flow(outside, lbIP, there), Fresh},
		"source ranges are not for the node port": {byCIDR, statsdService(ranges), both, flow("198.51.100.1:40001", np, there), Fresh},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Build(tt.cfg, plan.Host{}, snapshot(tt.service, tt.endpoints))
			if got := new(History).Stale(p, tt.flow); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// walk goes from one Snapshot to the next and notes what happened.
func walk(t *testing.T, cfg plan.Config, steps ...*model.Snapshot) (*plan.Plan, *History) {
	t.Helper()
	p, h, now := plan.NewPlanner(cfg), &History{}, model.NewSnapshot()
	for _, next := range steps {
		before := p.Plan().Node
		h.Note(before, p.Update(model.Diff(now, next)))
		now = next
	}
	return p.Plan(), h
}

func TestStaleAfterChanges(t *testing.T) {
	full, none := snapshot(statsdService(), both), snapshot(nil, nil)
	moved := snapshot(statsdService(func(s *model.Service) {
		s.Ports = []model.ServicePort{{Protocol: model.UDP, Port: 8125, NodePort: 30999}}
	}), both)
	renumbered := &model.Snapshot{Services: full.Services, Slices: full.Slices, Nodes: map[string]*model.Node{
		"node-a": {Name: "node-a", InternalIPs: []netip.Addr{netip.MustParseAddr("192.168.10.99")}},
	}}
	for name, tt := range map[string]struct {
		steps []*model.Snapshot
		flow  Flow
		want  Reason
	}{
		"Service deleted: cluster IP":               {[]*model.Snapshot{full, none}, flow(pod, vip, there), FrontendGone},
		"Service deleted: node port":                {[]*model.Snapshot{full, none}, flow(outside, np, there), FrontendGone},
		"Service deleted: never translated":         {[]*model.Snapshot{full, none}, flow(pod, vip, vip), Fresh},
		"Service deleted: somebody else's server":   {[]*model.Snapshot{full, none}, flow(pod, vip, gone), Fresh},
		"Service deleted: straight to its endpoint": {[]*model.Snapshot{full, none}, flow(pod, there, there), Fresh},
		"Service deleted: foreign address":          {[]*model.Snapshot{full, none}, flow(outside, "198.51.100.9:30160", there), Fresh},
		"endpoints, then the Service":               {[]*model.Snapshot{full, snapshot(statsdService(), nil), none}, flow(pod, vip, there), FrontendGone},
		"node port moved":                           {[]*model.Snapshot{full, moved}, flow(outside, np, there), FrontendGone},
		"node port moved: cluster IP stays":         {[]*model.Snapshot{full, moved}, flow(pod, vip, there), Fresh},
		"address left the node":                     {[]*model.Snapshot{full, renumbered}, flow(outside, np, there), FrontendGone},
		"never ours":                                {[]*model.Snapshot{none}, flow(pod, vip, there), Fresh},
	} {
		t.Run(name, func(t *testing.T) {
			p, h := walk(t, byCIDR, tt.steps...)
			if got := h.Stale(p, tt.flow); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			h.Forget()
			if got := h.Stale(p, tt.flow); got != Fresh {
				t.Errorf("after Forget: got %q, want it fresh", got)
			}
		})
	}
}

// What went while nobody watched is known from the rules that it left behind.
func TestStaleByTheKernelsRules(t *testing.T) {
	p, h := walk(t, byCIDR, snapshot(nil, nil))
	udp := func(to string) plan.Key {
		a := netip.MustParseAddrPort(to)
		return plan.Key{Addr: a.Addr(), Protocol: model.UDP, Port: a.Port()}
	}
	h.NoteFrontends([]plan.Key{udp(vip), udp("0.0.0.0:30160"), {Addr: netip.MustParseAddr("10.96.30.15"), Protocol: model.TCP, Port: 8125}})
	for _, tt := range []struct {
		flow Flow
		want Reason
	}{
		{flow(pod, vip, there), FrontendGone},
		{flow(outside, np, there), FrontendGone},
		{flow(outside, np, np), Fresh},
		{flow(outside, "198.51.100.9:30160", there), Fresh},
		{flow(pod, "10.96.30.15:8125", there), Fresh},
	} {
		if got := h.Stale(p, tt.flow); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.flow, got, tt.want)
		}
	}
}

// What went while a process was killed, after it had written rules and before it removed entries, nobody knows.
func TestStaleAtTheStart(t *testing.T) {
	p, h := walk(t, byCIDR, snapshot(statsdService(), both))
	for _, tt := range []struct {
		flow               Flow
		atStart, otherwise Reason
	}{
		{flow(pod, "10.96.30.99:53", gone), FrontendGone, Fresh},
		{flow(pod, "10.96.30.99:53", "10.96.30.99:53"), Fresh, Fresh},
		{flow(outside, "192.168.10.11:30999", gone), Fresh, Fresh},
		{flow(pod, vip, there), Fresh, Fresh},
		{flow(pod, "10.96.30.99:53", "198.51.100.7:53"), Fresh, Fresh}, // no pod, so somebody else translated it
	} {
		h.Forget()
		if got := h.Stale(p, tt.flow); got != tt.otherwise {
			t.Errorf("%v: got %q, want %q", tt.flow, got, tt.otherwise)
		}
		h.NoteStart()
		if got := h.Stale(p, tt.flow); got != tt.atStart {
			t.Errorf("%v at the start: got %q, want %q", tt.flow, got, tt.atStart)
		}
	}
}

func TestDue(t *testing.T) {
	full := snapshot(statsdService(), both)
	p, h, now := plan.NewPlanner(byCIDR), &History{}, model.NewSnapshot()
	step := func(next *model.Snapshot) bool {
		before := p.Plan().Node
		h.Note(before, p.Update(model.Diff(now, next)))
		now = next
		due := h.Due()
		h.Forget()
		return due
	}
	if !step(full) {
		t.Error("a UDP Service came: want entries looked at")
	}
	if step(full) {
		t.Error("nothing changed: want no look at the entries")
	}
	tcp := full.Clone()
	web := &model.Service{
		Name: model.Name{Namespace: "shop", Name: "web"}, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.9")},
		Ports: []model.ServicePort{{Protocol: model.TCP, Port: 80}},
	}
	tcp.Services[web.Name] = web
	if step(tcp) {
		t.Error("a TCP Service came: want no look at the entries")
	}
	if !step(snapshot(nil, nil)) {
		t.Error("the UDP Service went: want entries looked at")
	}
}
