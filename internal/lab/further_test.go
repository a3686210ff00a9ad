package lab_test

import (
	"errors"
	"net/netip"
	"testing"

	"sluice/internal/kernel/link"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// twoNodes is the reference lab with node-b as a node of its own.
func twoNodes() lab.Topology {
	t := lab.Reference()
	b, pods := t.Outside[0], t.Outside[2]
	t.Outside = append(t.Outside[1:2:2], t.Outside[3:]...)
	t.Further = []lab.Site{{Node: b, Pods: []lab.Machine{pods}}}
	return t
}

// Pods of a further node are behind it, and reach everyone as they reach them.
func TestFurtherNode(t *testing.T) {
	l := up(t, twoNodes())
	for _, name := range []string{"pods-a", "pods-b", "node-b", "clients"} {
		serve(t, l.Host(name), model.TCP, 80)
	}
	for _, to := range []string{"10.244.1.50:80", "[fd00:244:0:1::50]:80", "192.168.10.12:80", "203.0.113.9:80"} {
		from := netip.MustParseAddr("10.244.2.7")
		if netip.MustParseAddrPort(to).Addr().Is6() {
			from = netip.MustParseAddr("fd00:244:0:2::7")
		}
		o := dial(t, l.Host("pods-b"), lab.Dial{From: from, To: netip.MustParseAddrPort(to), Protocol: model.TCP})
		if o.Action != plan.Forward || o.Endpoint.String() != to || o.Peer.Addr() != from {
			t.Errorf("%s from a pod of node-b: %s", to, o)
		}
	}
	if o := dial(t, l.Host("clients"), lab.Dial{To: netip.MustParseAddrPort("10.244.2.7:80"), Protocol: model.TCP}); o.Action != plan.Forward {
		t.Errorf("a pod of node-b from outside: %s", o)
	}
}

// An address is with the node that the network hands it to; what that one does not know comes back to nobody.
func TestRouteMovesARange(t *testing.T) {
	l := up(t, twoNodes())
	b := l.Host("node-b")
	serve(t, b, model.TCP, 80)
	h, err := link.Open(b.Namespace().Fd())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, vip := range []string{"192.0.2.1/32", "2001:db8:1b::1/128"} {
		p := netip.MustParsePrefix(vip)
		if err := errors.Join(h.AddAddress("lo", p), h.Settle(t.Context())); err != nil {
			t.Fatal(err)
		}
		to := lab.Dial{To: netip.AddrPortFrom(p.Addr(), 80), Protocol: model.TCP}
		if o := dial(t, l.Host("clients"), to); o.Action != plan.Unhandled {
			t.Errorf("%s, which node-a knows nothing of: %s", vip, o)
		}
		if err := l.Route(b, p); err != nil {
			t.Fatal(err)
		}
		if o := dial(t, l.Host("clients"), to); o.Action != plan.Forward {
			t.Errorf("%s, which is node-b's: %s", vip, o)
		}
		if o := dial(t, l.Host("pods-a"), to); o.Action != plan.Unhandled {
			t.Errorf("%s from a pod, whose node has to handle it: %s", vip, o)
		}
	}
}
