package ipvs

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// reply is where packets of clients came from.
type reply struct {
	Server
	netip.AddrPort
}

// Retire has virtual servers go as fast as their connections allow, when another mode has taken over. None gets new ones
// any more: those come by the other mode's rules, which translate a packet before it is for this node. What is
// established goes on. It tells how many virtual servers are left, or addresses that connections of the node speak from, and
// has to be called again until there are none; so does a process that finds some when it starts in another mode. The rules
// are let alone.
func (b *Backend) Retire(ctx context.Context) (left int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, err := b.lookForOurs(ctx)
	if err != nil || !found {
		b.known, b.replies = nil, nil
		return 0, err
	}
	defer func() { b.known = nil }()
	if err = b.standIn(); err == nil {
		err = b.retireServers()
	}
	if err == nil {
		err = b.retireAddresses()
	}
	return cmp.Or(len(b.known.ours()), len(b.known.standIns)), err
}

// retireServers takes away what has no connections.
func (b *Backend) retireServers() error {
	replies := map[reply]traffic{}
	for _, s := range b.known.ours() {
		if err := b.retire(s, replies); err != nil {
			return err
		}
	}
	b.replies = replies
	return nil
}

// retireAddresses takes away the addresses that have no virtual servers any more, and the device when there are none.
func (b *Backend) retireAddresses() (err error) {
	if len(b.known.ours()) > 0 {
		_, err = b.removeAddresses()
	} else {
		_, err = b.removeDevice()
	}
	if err != nil {
		return err
	}
	return b.dismissStandIns()
}

// retire takes away what has no connections of one virtual server.
func (b *Backend) retire(s Server, replies map[reply]traffic) error {
	h := b.known.servers[s]
	for _, a := range sorted(h.destinations) {
		o := operation{server: s, destination: a}
		switch d := h.destinations[a]; {
		case d.weight == 0 && !d.busy, s.Protocol == model.UDP && b.isDeaf(reply{s, a}, d.traffic):
			o.verb = deleteDestination
		case d.weight > 0:
			o.verb = setDestination
		default:
			continue
		}
		if err := b.do(o); err != nil {
			return err
		}
	}
	for a, d := range h.destinations {
		replies[reply{s, a}] = d.traffic
	}
	if len(h.destinations) > 0 {
		return nil
	}
	return b.do(operation{verb: deleteServer, server: s})
}

// isDeaf reports whether an endpoint has been sent packets and has sent none since the last look. Nobody follows endpoints
// any more, and a client of UDP would go on with one that is gone.
func (b *Backend) isDeaf(who reply, now traffic) bool {
	before, known := b.replies[who]
	return known && now.received > before.received && now.sent == before.sent
}

// ours lists the virtual servers that are for us to remove.
func (s *state) ours() (list []Server) {
	for at, h := range s.servers {
		if h.ours {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, Server.Compare)
	return list
}
