package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"sluice/internal/backend/ipvs"
	"sluice/internal/kernel/conntrack"
	"sluice/internal/kernel/link"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
)

// The kernel settings that Sluice reads or writes.
const (
	keyRouteLocalnet = "net.ipv4.conf.all.route_localnet"
	keyForward       = "net.ipv4.ip_forward"
	keyNoIPv6        = "net.ipv6.conf.all.disable_ipv6"
	keyBeLiberal     = "net.netfilter.nf_conntrack_tcp_be_liberal"
)

// beLiberal reports whether connection tracking takes TCP packets out of window as they are.
func beLiberal() (bool, error) {
	value, err := sysctl.Get(keyBeLiberal)
	if err != nil {
		return false, fmt.Errorf("%w (connection tracking is not in this kernel?)", err)
	}
	return value != "0", nil
}

func setRouteLocalnet(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	_, err := sysctl.Set(keyRouteLocalnet, value)
	return err
}

// forDaemon makes a setting of route_localnet one that does not hold up the daemon. Where it fails, as it does in a
// container whose /proc/sys is read-only, node ports do not answer on loopback addresses, and all else works: it is told
// once, and tried again after each write.
func forDaemon(set func(on bool) error, log *slog.Logger) func(on bool) error {
	told := false
	return func(on bool) error {
		err := set(on)
		if !on {
			told = false
			return err // the guard of the loopback addresses has to stay
		}
		if err != nil && !told {
			log.Warn("node ports do not answer on loopback addresses", "error", err)
		}
		told = err != nil
		return nil
	}
}

func routesLocalnet() (bool, error) {
	value, err := sysctl.Get(keyRouteLocalnet)
	return value != "0", err
}

// readHost asks the kernel for this machine's addresses.
func readHost(h *link.Handle) (plan.Host, error) {
	addrs, err := h.Addresses()
	if err != nil {
		return plan.Host{}, err
	}
	var host plan.Host
	for _, a := range addrs {
		addr := a.Prefix.Addr()
		if a.Tentative || addr.IsLoopback() || a.Interface == ipvs.DeviceName {
			continue // not usable yet; this node's on every machine; or a Service's
		}
		host.Addresses = append(host.Addresses, addr)
		if f := model.FamilyOf(addr); !host.Primary[f].IsValid() && !a.LinkLocal && !a.Loopback {
			host.Primary[f] = addr
		}
	}
	if len(host.Addresses) == 0 {
		// To the plan, no address at all means that none is known.
		host.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return host, nil
}

// hostNow is readHost for once.
func hostNow() (plan.Host, error) {
	h, err := link.Here()
	if err != nil {
		return plan.Host{}, err
	}
	defer h.Close()
	return readHost(h)
}

// sweep removes the UDP entries of connection tracking that are stale. A list that the kernel could not give whole is
// worked on as it is; the error then has the sweep repeated.
func sweep(_ context.Context, stale func(flows.Flow) flows.Reason) (removed [2]int, err error) {
	conn, err := conntrack.Open()
	if err != nil {
		return removed, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	all, err := conn.UDP()
	var old [2][]conntrack.Flow
	for _, f := range all {
		if stale(flows.Flow{Client: f.Source, To: f.Dest, Server: f.ReplyFrom}) != flows.Fresh {
			family := model.FamilyOf(f.Dest.Addr())
			old[family] = append(old[family], f)
		}
	}
	for _, f := range model.Families {
		n, deleteErr := conn.Delete(old[f])
		removed[f], err = n, errors.Join(err, deleteErr)
	}
	return removed, err
}

// families are those that this kernel has.
func families() []model.Family {
	if off, err := sysctl.Get(keyNoIPv6); err != nil || off == "1" {
		return []model.Family{model.IPv4}
	}
	return model.Families[:]
}

// tellForwarding warns where packets of others cannot pass this machine.
func tellForwarding(log *slog.Logger) {
	switch value, err := sysctl.Get(keyForward); {
	case err != nil:
		log.Warn("it is not known whether this machine forwards packets", "error", err)
	case value == "0":
		log.Warn("this machine does not forward packets, so only connections of its own reach endpoints elsewhere", "setting", keyForward, "value", value)
	}
}
