package differential_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// The clients outside. Load balancers may be open to the first range alone.
var (
	allowed4 = netip.MustParsePrefix("203.0.113.0/25")
	allowed6 = netip.MustParsePrefix("2001:db8:77::/120")
	refused4 = netip.MustParsePrefix("203.0.113.128/26")
	refused6 = netip.MustParsePrefix("2001:db8:77::100/120")
)

// client is a kind of client, seen from the node that is asked.
type client uint8

const (
	pod             client = iota // a pod of the node
	endpoint                      // an endpoint of the Service, on the node
	process                       // a process of the node
	outside                       // outside, in the first range
	outsideRefused                // outside, in the second
	podElsewhere                  // a pod of the third node
	endpointOutside               // an endpoint of the Service, on the third node
)

func (c client) String() string {
	return [...]string{
		"a pod of the node", "an endpoint on the node", "a process of the node", "a client outside",
		"a client outside, in no source range", "a pod elsewhere", "an endpoint elsewhere",
	}[c]
}

// target is a kind of address.
type target uint8

const (
	clusterIP target = iota
	wrongPort        // of a cluster IP
	nodePort
	loopback // a node port there
	externalIP
	loadBalancer
)

func (t target) String() string {
	return [...]string{
		"cluster IP", "cluster IP, port of no Service", "node port", "node port on loopback", "external IP", "load balancer IP",
	}[t]
}

// question is one client that connects to one address.
type question struct {
	subject  *subject
	client   client
	number   byte // of the pod, for an endpoint
	target   target
	addr     netip.Addr // not valid: the node's own
	port     uint16
	protocol model.Protocol
	family   model.Family
	worn     bool // clients of this kind may be held to what they got before the last edits
}

func (q question) String() string {
	at := "the node's " + q.family.String() + " address"
	if q.addr.IsValid() {
		at = q.addr.String()
	}
	return fmt.Sprintf("%s → %s: %s, port %d/%s", q.client, q.target, at, q.port, q.protocol)
}

// sticky is whether the Service has session affinity.
func (q question) sticky() bool {
	return q.subject.service.Spec.SessionAffinity == v1.ServiceAffinityClientIP
}

// alone is whether there is one such client only, so that affinity holds it to one endpoint.
func (q question) alone() bool {
	return q.client == process || q.client == endpoint || q.client == endpointOutside
}

// questions are all there is to ask about a Service as it is now.
func (o *subject) questions() (list []question) {
	s := o.service
	for i, f := range families(s) {
		q := question{subject: o, family: f}
		headless := s.Spec.ClusterIP == v1.ClusterIPNone
		for _, p := range s.Spec.Ports {
			q.port, q.protocol = uint16(p.Port), protocol(p)
			if q.protocol == model.SCTP && o.onMachines() {
				continue // these have no SCTP, and say so no more often than the kernel lets them
			}
			if !headless {
				q.addr = netip.MustParseAddr(s.Spec.ClusterIPs[i])
				list = append(list, o.ask(q, clusterIP, pod, endpoint, process, outside)...)
			}
			list = append(list, o.external(q, p)...)
		}
		if !headless {
			q.port, q.protocol = 9, model.TCP
			list = append(list, o.ask(q, wrongPort, pod, process, outside)...)
		}
	}
	return list
}

// onMachines reports whether some endpoints are in no pod.
func (o *subject) onMachines() bool {
	return slices.ContainsFunc(o.members, func(m member) bool { return m.site == machines })
}

// external are the questions about a port's other addresses, of the family of q.
func (o *subject) external(q question, p v1.ServicePort) (list []question) {
	inFamily := func(text string) bool {
		q.addr, _ = netip.ParseAddr(text)
		return q.addr.IsValid() && model.FamilyOf(q.addr) == q.family
	}
	for _, text := range o.service.Spec.ExternalIPs {
		if inFamily(text) {
			list = append(list, o.ask(q, externalIP, pod, endpoint, process, outside)...)
		}
	}
	for _, i := range o.service.Status.LoadBalancer.Ingress {
		if inFamily(i.IP) {
			list = append(list, o.ask(q, loadBalancer, pod, endpoint, process, outside, outsideRefused)...)
		}
	}
	if q.port = uint16(p.NodePort); q.port == 0 {
		return list
	}
	q.addr = netip.Addr{}
	list = append(list, o.ask(q, nodePort, pod, endpoint, process, outside, podElsewhere, endpointOutside)...)
	q.addr = [...]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}[q.family]
	return append(list, o.ask(q, loopback, process)...)
}

// ask has q asked by these clients, as far as they exist.
func (o *subject) ask(q question, t target, clients ...client) (list []question) {
	for _, c := range clients {
		q.client, q.target = c, t
		if c == endpoint || c == endpointOutside {
			at := twins
			if c == endpointOutside {
				at = elsewhere
			}
			m, ok := o.member(at)
			if !ok || q.sticky() { // whether it is sent back to itself would be chance
				continue
			}
			q.number = m.number
		}
		list = append(list, q)
	}
	return list
}

// member is the first of a site.
func (o *subject) member(at site) (member, bool) {
	for _, m := range o.members {
		if m.site == at {
			return m, true
		}
	}
	return member{}, false
}

func protocol(p v1.ServicePort) model.Protocol {
	return map[v1.Protocol]model.Protocol{v1.ProtocolTCP: model.TCP, v1.ProtocolUDP: model.UDP, v1.ProtocolSCTP: model.SCTP}[p.Protocol]
}

// dial is a connection that asks q of a side, and the machine that opens it. Where there are many such clients it is any.
func (w *world) dial(s *side, q question) (*lab.Host, lab.Dial) {
	d := lab.Dial{To: netip.AddrPortFrom(q.addr, q.port), Protocol: q.protocol}
	if !q.addr.IsValid() {
		d.To = netip.AddrPortFrom(s.Address(q.family), q.port)
	}
	number := byte(100 + rand.IntN(150))
	switch q.client {
	case pod:
		d.From = w.pod(s.Node, q.family, number)
		return s.Pods, d
	case endpoint:
		d.From = w.pod(s.Node, q.family, q.number)
		return s.Pods, d
	case podElsewhere:
		d.From = w.pod(w.elsewhere, q.family, number)
		return w.elsewhere.Pods, d
	case endpointOutside:
		d.From = w.pod(w.elsewhere, q.family, q.number)
		return w.elsewhere.Pods, d
	case outside:
		d.From = anyOf([...]netip.Prefix{allowed4, allowed6}[q.family])
	case outsideRefused:
		d.From = anyOf([...]netip.Prefix{refused4, refused6}[q.family])
	case process:
		return s.Host, d
	}
	return w.Clients(), d
}

// anyOf is an address of a range, with one of its first 50 host numbers but the first.
func anyOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	bytes[len(bytes)-1] += byte(1 + rand.IntN(49))
	a, _ := netip.AddrFromSlice(bytes)
	return a
}
