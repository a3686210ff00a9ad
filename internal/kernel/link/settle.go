package link

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// settlePause is the wait between two looks.
const settlePause = time.Millisecond

// Settle waits until packets that come for any address of the namespace are taken in, but for those addresses that the
// kernel still looks for duplicates of. For IPv6 the kernel sees to that a moment after [Handle.AddAddress].
func (h *Handle) Settle(ctx context.Context) error {
	for {
		missing, err := h.unsettled()
		if err != nil || !missing.IsValid() {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the route to this machine's address %s: %w", missing, ctx.Err())
		case <-time.After(settlePause):
		}
	}
}

// at is an address of an interface, by its number.
type at struct {
	netip.Addr
	index int
}

// unsettled is an IPv6 address without a route to it in the local table; it is not valid if there is none.
func (h *Handle) unsettled() (netip.Addr, error) {
	addrs, err := dump(func() ([]netlink.Addr, error) { return h.nl.AddrList(nil, netlink.FAMILY_V6) })
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list addresses: %w", err)
	}
	local, err := h.local()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addrs {
		addr := toPrefix(a.IPNet).Addr()
		if a.Flags&unix.IFA_F_TENTATIVE == 0 && !local[at{addr, a.LinkIndex}] {
			return addr, nil
		}
	}
	return netip.Addr{}, nil
}

func (h *Handle) local() (map[at]bool, error) {
	routes, err := dump(func() ([]netlink.Route, error) {
		return h.nl.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Table: TableLocal}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes to this machine: %w", err)
	}
	all := map[at]bool{}
	for _, r := range routes {
		if r.Dst != nil {
			all[at{toPrefix(r.Dst).Addr(), r.LinkIndex}] = true
		}
	}
	return all, nil
}
