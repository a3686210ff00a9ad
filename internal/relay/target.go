package relay

import (
	"net/netip"
	"os"
	"slices"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Key names a Target.
type Key struct {
	Port plan.PortID
	List plan.List
	// Direct is for a Target that clients connect to themselves, at the loopback address. It stands beside the one of
	// the same list that the kernel redirects to.
	Direct bool
}

// String is like "namespace/name:port cluster" for logs.
func (k Key) String() string {
	s := k.Port.String()
	if k.List == plan.ListLocal {
		s += " local"
	}
	if k.Direct {
		s += " direct"
	}
	return s
}

// Compare orders keys by Service port, then list.
func (k Key) Compare(o Key) int {
	if c := k.Port.Compare(o.Port); c != 0 {
		return c
	}
	if c := int(k.List) - int(o.List); c != 0 {
		return c
	}
	return direct(k) - direct(o)
}

func direct(k Key) int {
	if k.Direct {
		return 1
	}
	return 0
}

// Loopback is the address of a family at which this node serves node ports to itself by a [Target] that is Direct.
func Loopback(f model.Family) netip.Addr {
	return [2]netip.Addr{model.IPv4: netip.AddrFrom4([4]byte{127, 0, 0, 1}), model.IPv6: netip.IPv6Loopback()}[f]
}

// Target is a list of endpoints and where it is listened at.
type Target struct {
	Key
	// Listen has the unspecified address of the family for a Target that the kernel redirects to: it listens at every
	// address of that family and no other. A Direct one has the address that clients use.
	Listen    netip.AddrPort
	Endpoints []plan.Endpoint
	// Draining are endpoints that get nothing new. UDP sessions with endpoints that are in neither list end. TCP
	// connections end when they end, whatever is listed.
	Draining  []plan.Endpoint
	Balancing model.Balancing
	Affinity  time.Duration // 0: none
	// ProxyProtocol is the version of the PROXY protocol header that endpoints get before what the client sends; 0: none.
	// For UDP it comes before each datagram, and only of version 2.
	ProxyProtocol uint8
}

// TargetOf is what there is to do for one list of a Service port, and not where.
func TargetOf(p *plan.Port, l plan.List) Target {
	return Target{
		Key: Key{Port: p.ID, List: l}, Endpoints: p.Endpoints(l), Draining: draining(p, l),
		Balancing: p.Balancing, Affinity: p.Affinity, ProxyProtocol: uint8(p.ProxyProtocol),
	}
}

// draining are endpoints that keep the sessions that they have by a list and get no new ones: all others of the Service
// port, or those on this node where only such may have any.
func draining(p *plan.Port, l plan.List) (es []plan.Endpoint) {
	others := [...]plan.List{plan.ListCluster: plan.ListLocal, plan.ListLocal: plan.ListCluster}
	for _, e := range slices.Concat(p.Endpoints(others[l]), p.Draining) {
		if l == plan.ListCluster || e.Local {
			es = append(es, e)
		}
	}
	return es
}

// Socket is a listening socket that one process hands to the next. Everything but File can be written as text.
type Socket struct {
	Key
	Listen netip.AddrPort
	File   *os.File // its owner closes it
}
