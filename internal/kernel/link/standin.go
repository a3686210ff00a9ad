package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ofStandIns is who made a route, to the kernel a number of no meaning: that of those who stand in for an address.
const ofStandIns netlink.RouteProtocol = 0x51

// AddStandIn makes an address one of this namespace's own that no interface has. Who spoke from it when an interface had it
// goes on; but a process here that connects to it speaks from source, where it would speak from the very address if that
// were an interface's. Having one already is success.
func (h *Handle) AddStandIn(addr, source netip.Addr) error {
	err := h.with("lo", func(lo netlink.Link) error {
		r := standIn(addr)
		r.LinkIndex, r.Src = lo.Attrs().Index, source.AsSlice()
		return h.nl.RouteAddEcmp(r) // beside that of an interface's address, and of IPv4 before it
	})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add local route to %s from %s: %w", addr, source, err)
	}
	return nil
}

// DeleteStandIn takes one away.
func (h *Handle) DeleteStandIn(addr netip.Addr) error {
	if err := h.nl.RouteDel(standIn(addr)); err != nil {
		return fmt.Errorf("delete local route to %s: %w", addr, err)
	}
	return nil
}

func standIn(addr netip.Addr) *netlink.Route {
	return &netlink.Route{
		Dst: toIPNet(netip.PrefixFrom(addr, addr.BitLen())), Table: TableLocal, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST,
		Protocol: ofStandIns,
	}
}

// StandIns lists those that there are.
func (h *Handle) StandIns() (addrs []netip.Addr, err error) {
	routes, err := dump(func() ([]netlink.Route, error) {
		filter := netlink.Route{Table: TableLocal, Protocol: ofStandIns}
		return h.nl.RouteListFiltered(netlink.FAMILY_ALL, &filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return nil, fmt.Errorf("list local routes: %w", err)
	}
	for _, r := range routes {
		addrs = append(addrs, toPrefix(r.Dst).Addr())
	}
	return addrs, nil
}

// SourceTo is the address from which a process here connects to another one unless it chooses.
func (h *Handle) SourceTo(to netip.Addr) (netip.Addr, error) {
	routes, err := h.nl.RouteGet(net.IP(to.AsSlice()))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("look for the route to %s: %w", to, err)
	}
	for _, r := range routes {
		if a, ok := netip.AddrFromSlice(r.Src); ok {
			return a.Unmap(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("look for the route to %s: %w: no source", to, ErrNotFound)
}
