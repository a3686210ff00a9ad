package differential_test

import (
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
	"sluice/test/cluster"
)

// site is where a member of a Service is.
type site uint8

const (
	twins     site = iota // a pod on each of the two nodes that have a proxy
	machines              // these nodes themselves
	elsewhere             // a pod on the third node
	nowhere               // the same, and no node is named
)

// member is an endpoint of a Service, or one on either side.
type member struct {
	site       site
	number     byte // of the pod
	conditions discovery.EndpointConditions
	hints      hint
	slice      int  // number of its slice
	again      bool // it is in another slice already
}

// hint is whom a member is for.
type hint uint8

const (
	noHint   hint = iota
	ownZone       // the zone that it is in
	awayZone      // the zone of the third node
	ownNode       // the node that it is on
)

// members draws the endpoints of a Service.
func (d *drawer) members() (list []member) {
	if d.chance(12) {
		return nil
	}
	draining, hints := d.chance(10), pick(d, noHint, noHint, noHint, ownZone, awayZone, ownNode)
	for range 1 + d.IntN(3) {
		m := member{site: pick(d, twins, twins, elsewhere), number: byte(1 + d.IntN(99)), conditions: d.conditions(draining), hints: hints, slice: d.IntN(2)}
		switch {
		case d.chance(5):
			m.site = machines
		case d.chance(10):
			m.site = nowhere
		}
		if d.chance(8) {
			m.hints = noHint
		}
		list = append(list, m)
	}
	if d.chance(5) {
		m := list[0]
		m.slice, m.conditions, m.again = 1-m.slice, d.conditions(false), true
		list = append(list, m)
	}
	return list
}

// conditions draws a state in the life of a pod.
func (d *drawer) conditions(draining bool) discovery.EndpointConditions {
	type state struct{ ready, serving, terminating bool }
	s := pick(d,
		state{ready: true, serving: true}, state{ready: true, serving: true}, state{ready: true, serving: true},
		state{ready: true, serving: true}, state{}, state{serving: true},
		state{serving: true, terminating: true}, state{terminating: true}, state{ready: true, serving: true, terminating: true})
	switch {
	case draining:
		s = pick(d, state{serving: true, terminating: true}, state{terminating: true}, state{})
	case d.chance(10):
		return discovery.EndpointConditions{}
	}
	return discovery.EndpointConditions{Ready: &s.ready, Serving: &s.serving, Terminating: &s.terminating}
}

// slices are the EndpointSlices of a Service with these members.
func (w *world) slices(d *drawer, s *v1.Service, members []member) (list []*discovery.EndpointSlice) {
	for _, f := range families(s) {
		for number := range 2 {
			slice := &discovery.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("%s-%d-%d", s.Name, f, number), Namespace: namespace,
					Labels: map[string]string{discovery.LabelServiceName: s.Name},
				},
				AddressType: discovery.AddressType(f.String()), Ports: d.slicePorts(s),
			}
			if d.chance(3) {
				slice.Labels[labelHeadless] = ""
			}
			for _, m := range members {
				if m.slice == number {
					slice.Endpoints = append(slice.Endpoints, w.endpoints(f, m)...)
				}
			}
			list = append(list, slice)
		}
	}
	return list
}

// slicePorts are what the Service's ports are on the endpoints of one slice.
func (d *drawer) slicePorts(s *v1.Service) (ports []discovery.EndpointPort) {
	for _, p := range s.Spec.Ports {
		number := p.TargetPort.IntVal
		if number == 0 {
			number = int32(pick(d, targetPorts...))
		}
		if !d.chance(4) { // else it is a port that these pods do not have
			ports = append(ports, discovery.EndpointPort{Name: &p.Name, Port: &number, Protocol: &p.Protocol})
		}
	}
	return ports
}

// endpoints are what a slice says of a member.
func (w *world) endpoints(f model.Family, m member) []discovery.Endpoint {
	at := func(n *cluster.Node, a netip.Addr) discovery.Endpoint {
		return discovery.Endpoint{Addresses: []string{a.String()}, Conditions: m.conditions, NodeName: &n.Name, Hints: m.hints.on(n)}
	}
	a, b := w.sides[0].Node, w.sides[1].Node
	switch m.site {
	case twins:
		return []discovery.Endpoint{at(a, w.pod(a, f, m.number)), at(b, w.pod(b, f, m.number))}
	case machines:
		return []discovery.Endpoint{at(a, a.Address(f)), at(b, b.Address(f))}
	}
	e := at(w.elsewhere, w.pod(w.elsewhere, f, m.number))
	if m.site == nowhere {
		e.NodeName = nil
	}
	return []discovery.Endpoint{e}
}

// on is the hint for an endpoint of a node.
func (h hint) on(n *cluster.Node) *discovery.EndpointHints {
	zone := "zone-a"
	if n.Name == "elsewhere" || h == awayZone {
		zone = "zone-b"
	}
	switch h {
	case noHint:
		return nil
	case ownNode:
		return &discovery.EndpointHints{ForNodes: []discovery.ForNode{{Name: n.Name}}}
	}
	return &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: zone}}}
}
