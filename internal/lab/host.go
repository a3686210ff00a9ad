package lab

import (
	"context"
	"net/netip"
	"sync"

	"sluice/internal/kernel/netns"
	"sluice/internal/model"
)

// Host is one machine of a running lab.
type Host struct {
	Machine
	lab  *Lab
	ns   *netns.NS
	sctp lanes
}

// lanes let one client at a time talk to an address. A raw socket hears of every ICMP error between two addresses, so
// two at once would take each other's refusals.
type lanes struct {
	locks sync.Map // of *sync.Mutex, by address
}

// enter waits until the lane is free, and returns what frees it again.
func (l *lanes) enter(to netip.Addr) (leave func()) {
	lane, _ := l.locks.LoadOrStore(to, new(sync.Mutex))
	m := lane.(*sync.Mutex)
	m.Lock()
	return m.Unlock
}

// Namespace is the host's network namespace. It belongs to the lab.
func (h *Host) Namespace() *netns.NS { return h.ns }

// Address is the host's first address of a family; it is not valid if there is none.
func (h *Host) Address(f model.Family) netip.Addr {
	for _, a := range h.Addresses {
		if model.FamilyOf(a) == f {
			return a
		}
	}
	return netip.Addr{}
}

// Command returns a program to run on the host. It is killed when ctx ends, and when this process dies.
func (h *Host) Command(ctx context.Context, name string, args ...string) *netns.Cmd {
	return h.ns.Command(ctx, name, args...).DieWithParent()
}

// Do runs f on a thread inside the host's namespace.
func (h *Host) Do(f func() error) error { return h.ns.Do(f) }
