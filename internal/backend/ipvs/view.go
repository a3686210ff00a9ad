package ipvs

import (
	"context"
	"math"
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// View is what the kernel has, whoever made it, for a walk.
type View struct{ state *state }

// Look reads it. A kernel whose ip_vs is not in use has nothing.
func (b *Backend) Look(ctx context.Context) (View, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.observeLeft(ctx)
	return View{s}, err
}

// HasDevice reports whether there is the device.
func (v View) HasDevice() bool { return v.state.device }

// Has reports whether the device has an address.
func (v View) Has(a netip.Addr) bool {
	_, ok := v.state.addrs[a]
	return ok
}

// Pick is the endpoints that get new connections of the virtual server for a packet mark, or else for an address.
func (v View) Pick(to netip.AddrPort, protocol model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
	h := v.state.servers[markServer(model.FamilyOf(to.Addr()), mark)]
	if mark == 0 || h == nil {
		h = v.state.servers[Server{Key: plan.Key{Addr: to.Addr(), Protocol: protocol, Port: to.Port()}}]
	}
	if h == nil {
		return nil, false
	}
	var endpoints []plan.Endpoint
	for _, a := range sorted(h.destinations) {
		if w := h.destinations[a].weight; w > 0 {
			endpoints = append(endpoints, plan.Endpoint{AddrPort: a, Weight: uint16(min(w, math.MaxUint16))})
		}
	}
	return endpoints, true
}
