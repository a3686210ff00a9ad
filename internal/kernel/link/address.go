package link

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Address is an address of an interface.
type Address struct {
	Prefix    netip.Prefix // the address and the length of its network
	Interface string
	Loopback  bool // on the loopback interface
	LinkLocal bool // usable on its link alone
	Tentative bool // IPv6, not in use before the kernel has checked that nobody else has it
}

// Addresses returns the addresses of all interfaces in the namespace, in the kernel's order.
func (h *Handle) Addresses() ([]Address, error) {
	links, err := dump(h.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	byIndex := make(map[int]*netlink.LinkAttrs, len(links))
	for _, l := range links {
		byIndex[l.Attrs().Index] = l.Attrs()
	}
	addrs, err := dump(func() ([]netlink.Addr, error) { return h.nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	result := make([]Address, 0, len(addrs))
	for _, a := range addrs {
		// An interface that is new since the list of interfaces was read makes a notification of its own.
		if l := byIndex[a.LinkIndex]; l != nil {
			result = append(result, address(a, l))
		}
	}
	return result, nil
}

func address(a netlink.Addr, l *netlink.LinkAttrs) Address {
	prefix := toPrefix(a.IPNet)
	return Address{
		Prefix:    prefix,
		Interface: l.Name,
		Loopback:  l.Flags&net.FlagLoopback != 0,
		LinkLocal: prefix.Addr().IsLinkLocalUnicast(),
		Tentative: a.Flags&unix.IFA_F_TENTATIVE != 0,
	}
}

// AddAddress gives an interface an address, which is usable at once, or with IPv6 a moment later, see [Handle.Settle]: the
// kernel does not look for duplicates. Having the address already is success.
func (h *Handle) AddAddress(name string, prefix netip.Prefix) error {
	return h.addAddress(name, prefix, &netlink.Addr{IPNet: toIPNet(prefix)})
}

// AddMuteAddress is AddAddress of one that the kernel never chooses as source by itself, not even to masquerade, where the
// interface that a packet leaves by has none of its own: IPv4 has the scope of the machine for that, and IPv6 an address
// that is deprecated from the start.
func (h *Handle) AddMuteAddress(name string, prefix netip.Prefix) error {
	addr := &netlink.Addr{IPNet: toIPNet(prefix)}
	if prefix.Addr().Is6() {
		addr.ValidLft, addr.PreferedLft = math.MaxUint32, 0
	} else {
		addr.Scope = unix.RT_SCOPE_HOST
	}
	return h.addAddress(name, prefix, addr)
}

func (h *Handle) addAddress(name string, prefix netip.Prefix, addr *netlink.Addr) error {
	if prefix.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if prefix.IsSingleIP() {
		addr.Flags |= unix.IFA_F_NOPREFIXROUTE // there is nobody else on the link for a route to lead to
	}
	err := h.with(name, func(l netlink.Link) error { return h.nl.AddrAdd(l, addr) })
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add address %s to %s: %w", prefix, name, err)
	}
	return nil
}

// DeleteAddress takes an address from an interface.
func (h *Handle) DeleteAddress(name string, prefix netip.Prefix) error {
	err := h.with(name, func(l netlink.Link) error {
		return h.nl.AddrDel(l, &netlink.Addr{IPNet: toIPNet(prefix)})
	})
	if err != nil {
		return fmt.Errorf("delete address %s from %s: %w", prefix, name, err)
	}
	return nil
}

func toPrefix(n *net.IPNet) netip.Prefix {
	addr, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones)
}

func toIPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
