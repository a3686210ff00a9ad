package demo

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/kernel/ipvs"
)

// virtualServer is one as the kernel has it.
type virtualServer struct {
	ipvs.FoundServer
	destinations []ipvs.FoundDestination
}

func (v virtualServer) at() string { return netip.AddrPortFrom(v.Addr, v.Port).String() }

// servers lists the node's virtual servers in the order of their names.
func (r *ipvsRules) servers() (all []virtualServer, err error) {
	err = r.do(func(h *ipvs.Handle) error {
		found, err := h.Servers()
		if err != nil {
			return err
		}
		for _, f := range found {
			destinations, err := h.Destinations(f.Name)
			if err != nil {
				return err
			}
			slices.SortFunc(destinations, func(a, b ipvs.FoundDestination) int { return a.Compare(b.AddrPort) })
			all = append(all, virtualServer{f, destinations})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b virtualServer) int { return cmp.Compare(a.Name.String(), b.Name.String()) })
	return all, err
}

// serverTable is virtual servers as ipvsadm -L -n prints them.
func serverTable(servers []virtualServer) string {
	var b strings.Builder
	const columns = "%-38s %-7s %-6v %-10v %v\n"
	fmt.Fprintf(&b, columns, "  -> RemoteAddress:Port", "Forward", "Weight", "ActiveConn", "InActConn")
	for _, v := range servers {
		fmt.Fprintf(&b, "%s  %s %s\n", v.Protocol, v.at(), v.Scheduler)
		for _, d := range v.destinations {
			fmt.Fprintf(&b, columns, "  -> "+d.String(), "Masq", d.Weight, d.Active, d.Inactive)
		}
	}
	return b.String()
}

// serverCommands are virtual servers as ipvsadm -S -n prints them.
func serverCommands(servers []virtualServer) string {
	var b strings.Builder
	for _, v := range servers {
		fmt.Fprintf(&b, "-A -t %s -s %s\n", v.at(), v.Scheduler)
		for _, d := range v.destinations {
			fmt.Fprintf(&b, "-a -t %s -r %s -m -w %d\n", v.at(), d, d.Weight)
		}
	}
	return b.String()
}
