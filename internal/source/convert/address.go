package convert

import (
	"errors"
	"net/netip"
	"strings"

	netutils "k8s.io/utils/net"
)

var (
	errNotAddress = errors.New("not an IP address")
	errNotCIDR    = errors.New("not a CIDR such as 10.0.0.0/8 or fd00::/64")
)

// parseAddr reads an address as Kubernetes does: zeros before an octet are allowed, and mean nothing.
func parseAddr(s string) (netip.Addr, error) {
	addr, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(s))
	if !ok {
		return netip.Addr{}, errNotAddress
	}
	return addr.Unmap(), nil
}

// parsePrefix reads a CIDR as Kubernetes does: white space around it, zeros before an octet and bits behind the
// prefix are allowed, and mean nothing.
func parsePrefix(s string) (netip.Prefix, error) {
	ip, network, err := netutils.ParseCIDRSloppy(strings.TrimSpace(s))
	if err != nil {
		return netip.Prefix{}, errNotCIDR
	}
	addr, _ := netip.AddrFromSlice(ip)
	ones, bits := network.Mask.Size()
	addr = addr.Unmap()
	ones -= bits - addr.BitLen() // 96 for a CIDR inside ::ffff:0:0/96, which is an IPv4 one
	if ones < 0 {
		return netip.Prefix{}, errNotCIDR
	}
	return netip.PrefixFrom(addr, ones).Masked(), nil
}

// unusable says why an address can belong to no Service and no endpoint, or is "".
func unusable(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsMulticast():
		return "a multicast address"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	}
	return ""
}

// usableAddr reads an address that a Service or an endpoint can have.
func usableAddr(s string) (netip.Addr, error) {
	addr, err := parseAddr(s)
	if err != nil {
		return addr, err
	}
	if why := unusable(addr); why != "" {
		return addr, errors.New("must not be " + why)
	}
	return addr, nil
}
