package ipvs

import (
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
// established goes on. It tells how many virtual servers are left, and has to be called again until there are none; so
// does a process that finds some when it starts in another mode. The device goes last. The rules are let alone.
func (b *Backend) Retire(ctx context.Context) (left int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, err := b.lookForOurs(ctx)
	if err != nil || !found {
		b.known, b.replies = nil, nil
		return 0, err
	}
	defer func() { b.known = nil }()
	replies := map[reply]traffic{}
	for _, s := range b.known.ours() {
		if err := b.retire(s, replies); err != nil {
			return len(b.known.ours()), err
		}
	}
	b.replies = replies
	if left = len(b.known.ours()); left > 0 {
		_, err = b.removeAddresses()
	} else {
		_, err = b.removeDevice()
	}
	return left, err
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
