package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"sluice/internal/kernel/link"
	"sluice/internal/kernel/netns"
	"sluice/internal/model"
)

// uplink is the name of the one interface of a machine that has no machines behind it, and of the node's way out.
const uplink = "eth0"

// refused is the routing table of what the network does not take from the node.
const refused = 100

// nearEnd and farEnd are the link-local addresses of every link: a junction's and a machine's.
func nearEnd() netip.Prefix { return netip.MustParsePrefix("fe80::1/64") }
func farEnd() netip.Prefix  { return netip.MustParsePrefix("fe80::2/64") }

// junction is a namespace that routes between the machines linked to it: the network, or the node for its pods. It
// has no address on those links but link-local ones, so every machine is a network of one and all packets pass it.
type junction struct {
	ns *netns.NS
	// gateway is an IPv4 address of the junction's own, which it tells to any machine that asks; not valid: none.
	gateway netip.Addr
	// prefix begins the names of its interfaces.
	prefix string
	links  int
	// families are those that it routes.
	families []model.Family
}

// connect links a machine to the junction and routes its addresses there.
func (j *junction) connect(h *Host) error {
	if h.Interface == "" {
		h.Interface = fmt.Sprintf("%s%d", j.prefix, j.links)
		j.links++
	}
	near, err := link.Open(j.ns.Fd())
	if err != nil {
		return err
	}
	defer near.Close()
	far, err := link.Open(h.ns.Fd())
	if err != nil {
		return err
	}
	defer far.Close()
	return inOrder(
		func() error { return near.AddVeth(h.Interface, h.ns.Fd(), uplink) },
		func() error { return addAll(near, h.Interface, j.linkLocal(nearEnd())) },
		func() error { return near.Up(h.Interface) },
		func() error { return addAll(far, uplink, append(h.own(), j.linkLocal(farEnd())...)) },
		func() error { return far.Up(uplink) },
		func() error { return j.routeBack(far) },
		func() error { return j.routeAll(near, h, h.ranges()) },
	)
}

func addAll(h *link.Handle, name string, addresses []netip.Prefix) error {
	for _, a := range addresses {
		if err := h.AddAddress(name, a); err != nil {
			return err
		}
	}
	return nil
}

// linkLocal is the address of one end of a link, if it needs one.
func (j *junction) linkLocal(end netip.Prefix) []netip.Prefix {
	if !slices.Contains(j.families, model.IPv6) {
		return nil
	}
	return []netip.Prefix{end}
}

// routeBack gives a machine its default routes.
func (j *junction) routeBack(far *link.Handle) error {
	var routes []link.Route
	for _, near := range j.linkLocal(nearEnd()) {
		routes = append(routes, link.Route{To: netip.MustParsePrefix("::/0"), Via: near.Addr(), Interface: uplink})
	}
	if j.gateway.IsValid() {
		routes = append(
			routes,
			link.Route{To: netip.PrefixFrom(j.gateway, 32), Interface: uplink},
			link.Route{To: netip.MustParsePrefix("0.0.0.0/0"), Via: j.gateway, Interface: uplink},
		)
	}
	for _, r := range routes {
		if err := far.AddRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// separate makes the addresses of a machine strangers to each other. Its local addresses are such only for packets that
// come in, so what one sends to another goes the long way round, through the junction, as between two machines.
func (j *junction) separate(far *link.Handle, ranges []netip.Prefix) error {
	for _, p := range ranges {
		if err := far.AddLocal(p); err != nil {
			return err
		}
	}
	for _, f := range j.families {
		for _, r := range separation(f) {
			if err := far.AddRule(r); err != nil {
				return err
			}
		}
		if err := far.DeleteLocalRule(f == model.IPv6); err != nil {
			return err
		}
	}
	return nil
}

// separation are the rules for who still looks for local addresses: incoming packets, and processes that talk to
// loopback addresses or by multicast, as IPv6 does to find its neighbours.
func separation(f model.Family) []link.Rule {
	if f == model.IPv4 {
		return []link.Rule{
			{Incoming: uplink, Table: link.TableLocal},
			{To: netip.MustParsePrefix("127.0.0.0/8"), Table: link.TableLocal},
		}
	}
	return []link.Rule{
		{Incoming: uplink, IPv6: true, Table: link.TableLocal},
		{To: netip.MustParsePrefix("::1/128"), IPv6: true, Table: link.TableLocal},
		{To: netip.MustParsePrefix("ff00::/8"), IPv6: true, Table: link.TableLocal},
	}
}

// route sends packets for the ranges to a machine that is linked to the junction.
func (j *junction) route(h *Host, ranges []netip.Prefix) error {
	near, err := link.Open(j.ns.Fd())
	if err != nil {
		return err
	}
	defer near.Close()
	return j.routeAll(near, h, ranges)
}

func (j *junction) routeAll(near *link.Handle, h *Host, ranges []netip.Prefix) error {
	for _, p := range ranges {
		r := link.Route{To: p, Interface: h.Interface, Via: farEnd().Addr()}
		if p.Addr().Is4() {
			r.Via = h.Address(model.IPv4)
		}
		if p.Bits() == p.Addr().BitLen() && p.Addr() == r.Via {
			r.Via = netip.Addr{} // the machine itself
		}
		if err := near.AddRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// refuse makes the junction refuse packets to the ranges that a machine sends to it.
func (j *junction) refuse(h *Host, ranges []netip.Prefix) error {
	if len(ranges) == 0 {
		return nil
	}
	near, err := link.Open(j.ns.Fd())
	if err != nil {
		return err
	}
	defer near.Close()
	for _, p := range ranges {
		if err := near.AddProhibit(p, refused); err != nil {
			return err
		}
	}
	for _, f := range j.families {
		if err := near.AddRule(link.Rule{Incoming: h.Interface, IPv6: f == model.IPv6, Table: refused}); err != nil {
			return err
		}
	}
	return nil
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
