package ipvs

import "net/netip"

// A process of the node that connects to an address of an interface speaks from that very address. So when another mode has
// taken over, new connections of the node would go by that mode, but from addresses that are to go, and end with them. That
// is why the addresses go at once, and local routes stand in for them, by which the node speaks from an address that stays,
// while virtual servers have connections.

// standIn has local routes take the place of addresses that have virtual servers.
func (b *Backend) standIn() error {
	for a, source := range b.sources() {
		for _, o := range []operation{{verb: addStandIn, addr: a, source: source}, {verb: deleteAddress, addr: a}} {
			if err := b.do(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// sources are where the node is to speak from to addresses of the device: as it does to one of the endpoints there. One
// without, or where others have a virtual server, stays as it is.
func (b *Backend) sources() map[netip.Addr]netip.Addr {
	found, foreign := map[netip.Addr]netip.Addr{}, map[netip.Addr]bool{}
	for s, h := range b.known.servers {
		if _, bound := b.known.addrs[s.Addr]; !bound {
			continue
		}
		foreign[s.Addr] = foreign[s.Addr] || !h.ours
		if source := b.sourceTo(h, s.Addr); !found[s.Addr].IsValid() && source.IsValid() {
			found[s.Addr] = source
		}
	}
	for a := range foreign {
		if foreign[a] {
			delete(found, a)
		}
	}
	return found
}

// sourceTo is the source to the first endpoint that has one; not valid if none has.
func (b *Backend) sourceTo(h *held, server netip.Addr) netip.Addr {
	for _, to := range sorted(h.destinations) {
		source, err := b.device.SourceTo(to.Addr())
		if _, goes := b.known.addrs[source]; err == nil && !goes && source.Is4() == server.Is4() {
			return source
		}
	}
	return netip.Addr{} // the endpoint cannot be reached, or not from an address that stays
}

// dismissStandIns takes away those that have no use any more: the device has the address again, or nobody has connections
// to it or from it.
func (b *Backend) dismissStandIns() (err error) {
	var speak map[netip.Addr]bool
	for _, a := range sortedAddrs(b.known.standIns) {
		if !b.binds(a) && b.known.at[a] == 0 && speak == nil {
			if speak, err = b.deps.Sources(); err != nil {
				return err
			}
		}
		if !b.binds(a) && (b.known.at[a] > 0 || speak[a]) {
			continue
		}
		if err := b.do(operation{verb: deleteStandIn, addr: a}); err != nil {
			return err
		}
	}
	return nil
}

// binds reports whether the device has an address.
func (b *Backend) binds(a netip.Addr) bool {
	_, has := b.known.addrs[a]
	return has
}
