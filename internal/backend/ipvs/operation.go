package ipvs

import (
	"fmt"
	"net/netip"
	"strings"

	"sluice/internal/plan"
)

// verb is what an operation does.
type verb uint8

// The verbs.
const (
	addServer verb = iota
	setServer
	deleteServer
	addDestination
	setDestination
	deleteDestination
	addAddress
	deleteAddress
	addDevice
	deleteDevice
	addStandIn
	deleteStandIn
)

// operation is one change of the kernel.
type operation struct {
	verb
	server      Server
	scheduling  Scheduling
	destination netip.AddrPort
	weight      uint32
	addr        netip.Addr
	// source is that of the local route that stands in for addr.
	source netip.Addr
	// port is the Service port that it is for.
	port plan.PortID
}

// String is the command that does the same.
func (o operation) String() string {
	switch o.verb {
	case addAddress:
		return "ip address add " + onDevice(o.addr)
	case deleteAddress:
		return "ip address delete " + onDevice(o.addr)
	case addDevice:
		return "ip link add " + DeviceName + " type dummy"
	case deleteDevice:
		return "ip link delete " + DeviceName
	case addStandIn:
		return fmt.Sprintf("ip route prepend local %s dev lo src %s", o.addr, o.source)
	case deleteStandIn:
		return fmt.Sprintf("ip route delete local %s dev lo", o.addr)
	}
	return "ipvsadm " + o.options()
}

// options are those of ipvsadm, which are also the lines that ipvsadm -R reads.
func (o operation) options() string {
	switch o.verb {
	case addServer:
		return "-A " + o.server.String() + o.scheduling.options()
	case setServer:
		return "-E " + o.server.String() + o.scheduling.options()
	case deleteServer:
		return "-D " + o.server.String()
	case addDestination:
		return "-a " + destinationOptions(o.server, o.destination, o.weight)
	case setDestination:
		return "-e " + destinationOptions(o.server, o.destination, o.weight)
	}
	return fmt.Sprintf("-d %s -r %s", o.server, o.destination)
}

func destinationOptions(at Server, to netip.AddrPort, weight uint32) string {
	return fmt.Sprintf("%s -r %s -m -w %d", at, to, weight)
}

func onDevice(a netip.Addr) string { return prefixOf(a).String() + " dev " + DeviceName }

func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// options are those of ipvsadm.
func (s Scheduling) options() string {
	out := " -s " + s.Scheduler
	if s.Persistence > 0 {
		out += fmt.Sprintf(" -p %d", int(s.Persistence.Seconds()))
	}
	if s.Flags != 0 {
		out += " -b " + hashFlags(s.Scheduler, s.Flags)
	}
	return out
}

// hashFlags are the names of a hashing scheduler's flags.
func hashFlags(scheduler string, f Flags) string {
	var names []string
	if f&hashFallback != 0 {
		names = append(names, scheduler+"-fallback")
	}
	if f&hashPort != 0 {
		names = append(names, scheduler+"-port")
	}
	return strings.Join(names, ",")
}
