package iptwalk

import (
	"net/netip"
	"strconv"
	"strings"
)

// destination is where DNAT sends packets: one of the addresses, none meaning the one it has, and a port in the range,
// 0 meaning likewise.
type destination struct {
	addrs       []netip.Addr
	first, last uint16
}

// maxAddrs bounds the ranges of addresses that are followed one by one.
const maxAddrs = 4096

// port is the new port: the old one where the range allows it, as the kernel tries first.
func (d destination) port(old uint16) uint16 {
	if d.first == 0 || d.first <= old && old <= d.last {
		return old
	}
	return d.first
}

// parseDestination reads [ADDRESS[-ADDRESS]][:PORT[-PORT]], IPv6 addresses in brackets where a port follows.
func parseDestination(s string) (d destination, ok bool) {
	hosts, ports := splitPort(s)
	if d.first, d.last, ok = parseNATPorts(ports); !ok {
		return destination{}, false
	}
	if hosts == "" {
		return d, d.first != 0
	}
	from, to, ok := addressRange(hosts)
	if !ok {
		return destination{}, false
	}
	for a := from; a.Compare(to) <= 0 && a.IsValid(); a = a.Next() {
		if len(d.addrs) == maxAddrs {
			return destination{}, false
		}
		d.addrs = append(d.addrs, a)
	}
	return d, true
}

func splitPort(s string) (hosts, ports string) {
	if i := strings.LastIndex(s, "]:"); i >= 0 {
		return s[:i+1], s[i+2:]
	}
	if strings.Count(s, ":") == 1 {
		hosts, ports, _ = strings.Cut(s, ":")
		return hosts, ports
	}
	return s, ""
}

// parseNATPorts reads PORT or PORT-PORT; nothing is 0.
func parseNATPorts(s string) (first, last uint16, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	a, b, isRange := strings.Cut(s, "-")
	if !isRange {
		b = a
	}
	x, errA := strconv.ParseUint(a, 10, 16)
	y, errB := strconv.ParseUint(b, 10, 16)
	return uint16(x), uint16(y), errA == nil && errB == nil && 0 < x && x <= y
}
