// Package crowd makes many Services that are all alike, for tests of what their number does: as objects of the model,
// which costs nothing next to what is then done with them. None of their endpoints exists; a test that wants packets
// answered says where its endpoints are.
package crowd

import (
	"fmt"
	"net/netip"

	"sluice/internal/model"
)

// The ports of every Service and of every endpoint.
const (
	Port       = 80
	TargetPort = 8080
)

// Crowd is Services of one TCP port each, numbered from 0. There may be more of them than Services says: those are no
// part of the Snapshot yet.
type Crowd struct {
	Services, Endpoints int
	// At, if set, is where an endpoint is instead of at its own address; not valid: there.
	At func(service, endpoint int) netip.Addr
}

// Snapshot is all of it.
func (c Crowd) Snapshot() *model.Snapshot {
	s := model.NewSnapshot()
	for i := range c.Services {
		s.Apply(c.Add(i))
	}
	return s
}

// Add is the change that a Service comes.
func (c Crowd) Add(i int) model.Delta {
	d := c.Change(i, 0)
	s := &model.Service{
		Name: name(i), Type: model.ClusterIP, ClusterIPs: []netip.Addr{ClusterIP(i)},
		Ports: []model.ServicePort{{Name: "http", Protocol: model.TCP, Port: Port}},
	}
	d.Services = map[model.Name]*model.Service{s.Name: s}
	return d
}

// Remove is the change that a Service goes.
func (c Crowd) Remove(i int) model.Delta {
	return model.Delta{
		Services: map[model.Name]*model.Service{name(i): nil},
		Slices:   map[model.Name]*model.Slice{name(i): nil},
	}
}

// Change is the change that the first endpoint of a Service becomes another one: that of a version, from 0 to 25.
func (c Crowd) Change(i, version int) model.Delta {
	s := &model.Slice{
		Name: name(i), Service: name(i), Family: model.IPv4,
		Ports:     []model.SlicePort{{Name: "http", Protocol: model.TCP, Port: TargetPort}},
		Endpoints: make([]model.Endpoint, 0, c.Endpoints),
	}
	for e := range c.Endpoints {
		s.Endpoints = append(s.Endpoints, model.Endpoint{Address: c.Endpoint(i, e, version), Ready: true, Serving: true})
	}
	return model.Delta{Slices: map[model.Name]*model.Slice{s.Name: s}}
}

// Endpoint is the address of an endpoint. The version only matters for the first one of a Service.
func (c Crowd) Endpoint(service, endpoint, version int) netip.Addr {
	if c.At != nil {
		if a := c.At(service, endpoint); a.IsValid() {
			return a
		}
	}
	second := 128 + endpoint
	if endpoint == 0 {
		second = 230 + version
	}
	return netip.AddrFrom4([4]byte{10, byte(second), byte(service >> 8), byte(service)})
}

// ClusterIP is that of a Service.
func ClusterIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 100, byte(i >> 8), byte(i)}) }

func name(i int) model.Name {
	return model.Name{Namespace: "default", Name: fmt.Sprintf("service-%d", i)}
}
