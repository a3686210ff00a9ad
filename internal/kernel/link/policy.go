package link

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TableLocal is the kernel's routing table of this namespace's own addresses.
const TableLocal = unix.RT_TABLE_LOCAL

// AddLocal makes every address of a range one of this namespace's own.
func (h *Handle) AddLocal(to netip.Prefix) error {
	err := h.with("lo", func(lo netlink.Link) error {
		return h.nl.RouteReplace(&netlink.Route{
			Dst: toIPNet(to.Masked()), Table: TableLocal, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, LinkIndex: lo.Attrs().Index,
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

// Rule makes packets look into a routing table before the main one.
type Rule struct {
	Incoming string       // the interface they come in by; "" for any
	To       netip.Prefix // their destination; the zero Prefix for any of the family
	IPv6     bool         // of that family; To must be of the same
	Table    int
}

// AddRule adds a rule for routing, after those that are there.
func (h *Handle) AddRule(r Rule) error {
	rule := netlink.NewRule()
	rule.IifName, rule.Table, rule.Family = r.Incoming, r.Table, family(r.IPv6)
	if r.To.IsValid() {
		rule.Dst = toIPNet(r.To)
	}
	if err := h.nl.RuleAdd(rule); err != nil {
		return fmt.Errorf("add routing rule %+v: %w", r, err)
	}
	return nil
}

// DeleteLocalRule takes away the rule that packets look for this namespace's own addresses first. Without other rules
// for the local table it gets no packet any more.
func (h *Handle) DeleteLocalRule(ipv6 bool) error {
	rule := netlink.NewRule()
	rule.Priority, rule.Table, rule.Family = 0, TableLocal, family(ipv6)
	if err := h.nl.RuleDel(rule); err != nil {
		return fmt.Errorf("delete routing rule for local addresses: %w", err)
	}
	return nil
}

func family(ipv6 bool) int {
	if ipv6 {
		return netlink.FAMILY_V6
	}
	return netlink.FAMILY_V4
}
