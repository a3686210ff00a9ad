package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// ErrNotFound occurs when a namespace has no interface of the name.
var ErrNotFound = errors.New("no such interface")

// AddVeth makes a pair of interfaces, joined like the two ends of a cable: name in the handle's namespace and peer in
// the one that the file descriptor peerNS stands for.
func (h *Handle) AddVeth(name string, peerNS int, peer string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(peerNS)}
	if err := h.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth %s with peer %s: %w", name, peer, err)
	}
	return nil
}

// AddBridge makes a bridge.
func (h *Handle) AddBridge(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := h.nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("add bridge %s: %w", name, err)
	}
	return nil
}

// Attach makes the interface name a port of the bridge.
func (h *Handle) Attach(name, bridge string) error {
	err := h.with(bridge, func(b netlink.Link) error {
		return h.with(name, func(l netlink.Link) error {
			return h.nl.LinkSetMasterByIndex(l, b.Attrs().Index)
		})
	})
	if err != nil {
		return fmt.Errorf("attach %s to bridge %s: %w", name, bridge, err)
	}
	return nil
}

// Hairpin lets a bridge send a packet back through the port it came from, which a pod needs to reach itself through
// a Service.
func (h *Handle) Hairpin(port string) error {
	err := h.with(port, func(l netlink.Link) error { return h.nl.LinkSetHairpin(l, true) })
	if err != nil {
		return fmt.Errorf("set hairpin mode on %s: %w", port, err)
	}
	return nil
}

// Up sets an interface up.
func (h *Handle) Up(name string) error {
	if err := h.with(name, h.nl.LinkSetUp); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// Down sets an interface down.
func (h *Handle) Down(name string) error {
	if err := h.with(name, h.nl.LinkSetDown); err != nil {
		return fmt.Errorf("set %s down: %w", name, err)
	}
	return nil
}

// Rename gives an interface, which must be down, another name.
func (h *Handle) Rename(from, to string) error {
	err := h.with(from, func(l netlink.Link) error { return h.nl.LinkSetName(l, to) })
	if err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	return nil
}

// Delete removes an interface, and the other end of a veth pair with it.
func (h *Handle) Delete(name string) error {
	if err := h.with(name, h.nl.LinkDel); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// Route says where packets to a destination go: through an interface, through a gateway, or both.
type Route struct {
	To        netip.Prefix // 0.0.0.0/0 or ::/0 for the default route
	Via       netip.Addr   // gateway; the zero Addr for none
	Interface string       // "" where Via tells the interface
}

// AddRoute adds a route, in place of one with the same destination.
func (h *Handle) AddRoute(r Route) error {
	if err := h.addRoute(r); err != nil {
		return fmt.Errorf("add route to %s: %w", r.To, err)
	}
	return nil
}

func (h *Handle) addRoute(r Route) error {
	route := netlink.Route{Dst: toIPNet(r.To.Masked())}
	if r.Via.IsValid() {
		route.Gw = r.Via.AsSlice()
	}
	if r.Interface == "" {
		return h.nl.RouteReplace(&route)
	}
	return h.with(r.Interface, func(l netlink.Link) error {
		route.LinkIndex = l.Attrs().Index
		if !r.Via.IsValid() {
			route.Scope = netlink.SCOPE_LINK
		}
		return h.nl.RouteReplace(&route)
	})
}

// with calls f with the interface of that name.
func (h *Handle) with(name string, f func(netlink.Link) error) error {
	l, err := h.nl.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if err != nil {
		return err
	}
	return f(l)
}
