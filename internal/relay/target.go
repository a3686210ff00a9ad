package relay

import (
	"net/netip"
	"os"
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

// Socket is a listening socket that one process hands to the next. Everything but File can be written as text.
type Socket struct {
	Key
	Listen netip.AddrPort
	File   *os.File // its owner closes it
}
