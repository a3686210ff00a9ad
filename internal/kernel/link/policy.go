package link

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddLocal makes every address of a range one of this namespace's own, for the packets that look into the routing
// table (see [Handle.AddRule]).
func (h *Handle) AddLocal(to netip.Prefix, table int) error {
	err := h.with("lo", func(lo netlink.Link) error {
		return h.nl.RouteReplace(&netlink.Route{
			Dst: toIPNet(to.Masked()), Table: table, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, LinkIndex: lo.Attrs().Index,
		})
	})
	if err != nil {
		return fmt.Errorf("add local range %s: %w", to, err)
	}
	return nil
}

// AddProhibit refuses packets to a range, with the ICMP message "administratively prohibited", for those that look into
// the routing table.
func (h *Handle) AddProhibit(to netip.Prefix, table int) error {
	if err := h.nl.RouteReplace(&netlink.Route{Dst: toIPNet(to.Masked()), Table: table, Type: unix.RTN_PROHIBIT}); err != nil {
		return fmt.Errorf("prohibit %s: %w", to, err)
	}
	return nil
}

// AddRule makes packets of both families that come in by an interface look into a routing table before the main one.
func (h *Handle) AddRule(incoming string, table int) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		rule := netlink.NewRule()
		rule.IifName, rule.Table, rule.Family = incoming, table, family
		if err := h.nl.RuleAdd(rule); err != nil {
			return fmt.Errorf("add routing rule for what comes in by %s: %w", incoming, err)
		}
	}
	return nil
}
