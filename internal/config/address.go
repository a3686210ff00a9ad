package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	netutils "k8s.io/utils/net"
)

// parseIP reads an address as Kubernetes does, zeros in front included.
func parseIP(s string) netip.Addr {
	a, _ := netip.AddrFromSlice(netutils.ParseIPSloppy(s))
	return a.Unmap()
}

// completeAddresses gives the daemon's ports their addresses in full: all addresses and loopback of the family that
// bindAddress is of.
func (v *Values) completeAddresses() {
	all, loopback := "0.0.0.0", "127.0.0.1"
	if parseIP(v.as.BindAddress).Is6() {
		all, loopback = "::", "::1"
	}
	v.completeAddress("healthzBindAddress", &v.as.HealthzBindAddress, all, 10256, v.healthPort)
	v.completeAddress("metricsBindAddress", &v.as.MetricsBindAddress, loopback, 10249, v.metricsPort)
}

func (v *Values) completeAddress(path string, is *string, host string, number int32, former port) {
	if former.given {
		number = former.is
	}
	switch given, _, err := net.SplitHostPort(*is); {
	case *is == "":
		delete(v.where, path)
		*is = net.JoinHostPort(host, strconv.Itoa(int(number)))
	case err == nil && former.given && former.is == 0:
		*is = net.JoinHostPort(given, "0")
	case err == nil: // a port with the address wins over one apart
		return
	case netutils.ParseIPSloppy(*is) != nil:
		*is = net.JoinHostPort(*is, strconv.Itoa(int(number)))
	}
	if former.given && v.where[path].text == "" {
		v.where[path] = place{former.where, true}
	}
}

// listenAt is where one of the daemon's ports is; empty with port 0.
func (v *Values) listenAt(path, is string) (string, error) {
	host, text, err := net.SplitHostPort(is)
	if err != nil {
		return "", v.wrong(path, strconv.Quote(is), "want an address and a port, such as 127.0.0.1:10249")
	}
	ip := parseIP(host)
	if !ip.IsValid() {
		return "", v.wrong(path, strconv.Quote(is), "%q is no IP address", host)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", v.wrong(path, strconv.Quote(is), "%q is no port, 1 to 65535, or 0 for none", text)
	}
	if number == 0 {
		return "", nil
	}
	return netip.AddrPortFrom(ip, uint16(number)).String(), nil
}

// nodeIP is what bindAddress says: an unspecified address says nothing.
func (v *Values) nodeIP() (netip.Addr, error) {
	ip := parseIP(v.as.BindAddress)
	switch {
	case !ip.IsValid():
		return ip, v.wrong("bindAddress", fmt.Sprintf("%q", v.as.BindAddress), "want an IP address")
	case ip.IsUnspecified():
		return netip.Addr{}, nil
	}
	return ip, nil
}
