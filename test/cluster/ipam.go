package cluster

import (
	"fmt"
	"net/netip"
)

// ipam gives addresses to a node's pods: the same host number in each of the node's ranges. An address comes up again
// as late as possible, so that an old one tells which pod it was.
type ipam struct {
	ranges []netip.Prefix
	used   map[byte]bool
	last   byte
}

// The host numbers 1 to lastHost are for pods; that of the machine itself is 254.
const lastHost = 253

func newIPAM(ranges []netip.Prefix) *ipam { return &ipam{ranges: ranges, used: map[byte]bool{}} }

// take returns the addresses of a new pod, one a range.
func (a *ipam) take() ([]netip.Addr, error) {
	for range lastHost {
		a.last = a.last%lastHost + 1
		if !a.used[a.last] {
			a.used[a.last] = true
			return a.at(a.last), nil
		}
	}
	return nil, fmt.Errorf("all %d addresses of %s are in use", lastHost, a.ranges[0])
}

// at are the addresses of a host number.
func (a *ipam) at(host byte) (all []netip.Addr) {
	for _, p := range a.ranges {
		bytes := p.Addr().AsSlice()
		bytes[len(bytes)-1] = host
		addr, _ := netip.AddrFromSlice(bytes) // of the length that it had
		all = append(all, addr)
	}
	return all
}

// free gives back what take returned.
func (a *ipam) free(addrs []netip.Addr) {
	bytes := addrs[0].AsSlice()
	delete(a.used, bytes[len(bytes)-1])
}
