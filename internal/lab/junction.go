package lab

import (
	"errors"
	"fmt"
	"net/netip"

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
		func() error { return near.AddAddress(h.Interface, nearEnd()) },
		func() error { return near.Up(h.Interface) },
		func() error { return addAll(far, h.Machine) },
		func() error { return far.Up(uplink) },
		func() error { return j.routeBack(far) },
		func() error { return j.routeAll(near, h, h.ranges()) },
	)
}

func addAll(far *link.Handle, m Machine) error {
	for _, p := range append(m.own(), farEnd()) {
		if err := far.AddAddress(uplink, p); err != nil {
			return err
		}
	}
	return nil
}

// routeBack gives a machine its default routes.
func (j *junction) routeBack(far *link.Handle) error {
	routes := []link.Route{{To: netip.MustParsePrefix("::/0"), Via: nearEnd().Addr(), Interface: uplink}}
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
func separate(far *link.Handle, ranges []netip.Prefix) error {
	for _, p := range ranges {
		if err := far.AddLocal(p); err != nil {
			return err
		}
	}
	for _, r := range separation() {
		if err := far.AddRule(r); err != nil {
			return err
		}
	}
	return errors.Join(far.DeleteLocalRule(false), far.DeleteLocalRule(true))
}

// separation are the rules for who still looks for local addresses: incoming packets, and processes that talk to
// loopback addresses or by multicast, as IPv6 does to find its neighbours.
func separation() []link.Rule {
	return []link.Rule{
		{Incoming: uplink, Table: link.TableLocal},
		{To: netip.MustParsePrefix("127.0.0.0/8"), Table: link.TableLocal},
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
	return errors.Join(
		near.AddRule(link.Rule{Incoming: h.Interface, Table: refused}),
		near.AddRule(link.Rule{Incoming: h.Interface, IPv6: true, Table: refused}),
	)
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
