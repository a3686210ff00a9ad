package ipvs

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// compare collects what is to be done about virtual servers.
func (a *run) compare() *delta {
	d := &delta{lacking: a.lacking, protocols: a.protocols}
	for _, s := range sortedServers(a.todo.servers) {
		want := a.rules.server(s)
		if want != nil && s.Mark != 0 {
			a.protocols[s] = want.Port.Protocol
		}
		if !a.skips(want) {
			d.server(s, want, a.known.servers[s])
		}
	}
	return d
}

// skips reports whether a virtual server is let alone because the kernel has refused it.
func (a *run) skips(want *VirtualServer) bool {
	return want != nil && (a.req.Hold[want.Port] || a.result.Refused[want.Port] != nil)
}

// tellFallback tells a Service port once that it does not get the scheduler that it wants.
func (a *run) tellFallback(want *VirtualServer, has string) {
	wish := want.Schedulings[0].Scheduler
	switch {
	case wish == has:
		delete(a.told, want.Port)
	case a.lacking[wish] && a.told[want.Port] != wish:
		a.told[want.Port] = wish
		a.deps.Fallback(want.Port, fmt.Errorf("this kernel has no scheduler %s: %s is used", wish, has))
	}
}

// writeNew writes what has to be there before the rules: virtual servers, and the addresses that lead to them.
func (a *run) writeNew(ctx context.Context, d *delta) error {
	if !a.known.device {
		d.first(operation{verb: addDevice})
	}
	for _, addr := range sortedAddrs(a.todo.addrs) {
		if _, has := a.known.addrs[addr]; !has && a.rules.binds(addr) {
			d.first(operation{verb: addAddress, addr: addr})
		}
	}
	return a.write(ctx, d.before)
}

// writeRest takes away what has no use any more now that no rule leads there. It is kept where rules were not written.
func (a *run) writeRest(ctx context.Context, d *delta) error {
	failed := backend.FailedFamilies(a.rulesFailed)
	rest := slices.DeleteFunc(d.after, func(o operation) bool { return failed[o.family()] })
	if err := a.write(ctx, rest); err != nil {
		return err
	}
	for _, o := range rest {
		if o.verb == deleteServer {
			a.todo.addrs[o.server.Addr] = struct{}{} // it may have been the last one there
		}
	}
	var addrs []operation
	for _, addr := range sortedAddrs(a.todo.addrs) {
		if !a.keeps(addr) && !failed[model.FamilyOf(addr)] {
			addrs = append(addrs, operation{verb: deleteAddress, addr: addr})
		}
	}
	if err := a.write(ctx, addrs); err != nil {
		return err
	}
	return a.dismissStandIns()
}

// keeps reports whether the device keeps an address, or does not have it: also where nobody wants it, as long as there
// are virtual servers, which have connections, unless another interface has come to have it.
func (a *run) keeps(addr netip.Addr) bool {
	_, has := a.known.addrs[addr]
	return !has || a.rules.binds(addr) || a.known.at[addr] > 0 && a.rules.node.binds(addr)
}

func sortedServers(m map[Server]struct{}) []Server {
	return slices.SortedFunc(maps.Keys(m), Server.Compare)
}

func sortedAddrs(m map[netip.Addr]struct{}) []netip.Addr {
	return slices.SortedFunc(maps.Keys(m), netip.Addr.Compare)
}

// write has the kernel do one thing after the other. What is wrong with one Service port or one family does not keep it
// from doing the others.
func (a *run) write(ctx context.Context, ops []operation) error {
	for _, o := range ops {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", o, err)
		}
		if a.result.Refused[o.port] != nil {
			continue
		}
		if err := a.do(o); err != nil {
			if err := a.blame(o, err); err != nil {
				return err
			}
			continue
		}
		a.result.Written++
		if o.verb == addServer {
			a.made[o.server] = o.port
		}
		a.noteRestored(o)
	}
	return nil
}

// blame decides what a failure means. An error is one that all else has to wait for.
func (a *run) blame(o operation, err error) error {
	switch {
	case lacksScheduler(o, err) && !a.lacking[o.scheduling.Scheduler]:
		a.lacking[o.scheduling.Scheduler] = true
		return errAgain
	case isStale(err) && !lacksScheduler(o, err), !isRefusal(err):
		return err
	case o.port != (plan.PortID{}):
		a.result.Refuse(o.port, fmt.Errorf("%s: %w", o.port, err))
	case a.failed[o.family()] == nil:
		a.failed[o.family()] = err
	}
	return nil
}

func (o operation) family() model.Family {
	if o.addr.IsValid() {
		return model.FamilyOf(o.addr)
	}
	if o.server.Addr.IsValid() {
		return model.FamilyOf(o.server.Addr)
	}
	return model.IPv4
}

// noteRestored tells of what somebody else must have changed, since it was written before and nothing was to change it.
func (a *run) noteRestored(o operation) {
	_, changed := a.dirt.servers[o.server]
	_, claimed := a.dirt.addrs[o.addr]
	natural := o.verb == deleteDestination || o.verb == deleteServer || o.verb == deleteAddress
	if a.fresh && a.begun && !a.dirt.all && !changed && !claimed && !natural {
		a.result.Restored = append(a.result.Restored, o.String())
	}
}

// do does one thing, and knows it.
func (b *Backend) do(o operation) error {
	switch o.verb {
	case addServer, setServer:
		return b.doServer(o)
	case deleteServer:
		err := b.servers.Delete(nameOf(o.server))
		if err == nil {
			b.known.remove(o.server)
		}
		return err
	case addDestination, setDestination, deleteDestination:
		return b.doDestination(o)
	}
	return b.doDevice(o)
}

func (b *Backend) doServer(o operation) error {
	write := b.servers.Set
	if o.verb == addServer {
		write = b.servers.Add
	}
	if err := write(signedServer(o.server, o.scheduling)); err != nil {
		return err
	}
	now := &held{Scheduling: o.scheduling, signed: true, ours: true, destinations: map[netip.AddrPort]destination{}}
	if old := b.known.servers[o.server]; old != nil {
		now.destinations = old.destinations
	}
	b.known.put(o.server, now)
	return nil
}

func (b *Backend) doDestination(o operation) (err error) {
	at, to := nameOf(o.server), destinationOf(o.destination, o.weight)
	switch o.verb {
	case addDestination:
		err = b.servers.AddDestination(at, to)
	case setDestination:
		err = b.servers.SetDestination(at, to)
	default:
		err = b.servers.DeleteDestination(at, to)
	}
	if err != nil {
		return err
	}
	known := b.known.servers[o.server].destinations
	if o.verb == deleteDestination {
		delete(known, o.destination)
	} else {
		known[o.destination] = destination{weight: o.weight, busy: true}
	}
	return nil
}

func (b *Backend) doDevice(o operation) (err error) {
	switch o.verb {
	case addDevice:
		err = b.device.AddDummy(DeviceName)
		b.known.device = err == nil
	case addAddress:
		if err = b.device.AddMuteAddress(DeviceName, prefixOf(o.addr)); err == nil {
			b.known.addrs[o.addr] = struct{}{}
		}
	case deleteAddress:
		if err = b.device.DeleteAddress(DeviceName, prefixOf(o.addr)); err == nil {
			delete(b.known.addrs, o.addr)
		}
	case addStandIn:
		if err = b.device.AddStandIn(o.addr, o.source); err == nil {
			b.known.standIns[o.addr] = struct{}{}
		}
	case deleteStandIn:
		if err = b.device.DeleteStandIn(o.addr); err == nil {
			delete(b.known.standIns, o.addr)
		}
	default:
		if err = b.device.Delete(DeviceName); err == nil {
			b.known.device = false
			clear(b.known.addrs)
		}
	}
	return err
}

// linger has the rules refuse new connections to virtual servers that nobody wants and that stay for those they have.
func (a *run) linger(d *delta) {
	for s := range a.todo.servers {
		delete(a.lingering, s)
		if h := a.known.servers[s]; h != nil && h.ours && a.rules.server(s) == nil {
			a.lingering[s] = struct{}{}
		}
	}
	for _, o := range d.after {
		if o.verb == deleteServer {
			delete(a.lingering, o.server)
		}
	}
	a.rules.linger(a.known, a.lingering)
}

// linger has the rules refuse new connections to virtual servers at addresses of the device, unless somebody has come to
// have their place.
func (r *Ruleset) linger(have *state, left map[Server]struct{}) {
	ports := map[plan.PortID]*plan.Port{}
	for s := range left {
		if _, bound := have.addrs[s.Addr]; bound && r.places[s].winner() == nil {
			p := lingering(s)
			ports[p.ID] = p
		}
	}
	r.rules.linger(ports)
}

// note notes what drains, and whose the virtual servers are.
func (a *run) note() {
	a.counting.mu.Lock()
	defer a.counting.mu.Unlock()
	if a.fresh {
		a.counting.owners = map[Server]plan.PortID{}
	}
	for s := range a.todo.servers {
		want, h := a.rules.server(s), a.known.servers[s]
		delete(a.draining, s)
		delete(a.idle, s)
		delete(a.counting.owners, s)
		if h != nil && h.drains(want) {
			a.draining[s] = struct{}{}
		}
		if h == nil {
			delete(a.protocols, s)
		}
		if h != nil && want != nil {
			a.counting.owners[s] = want.Port
			a.tellFallback(want, h.Scheduler)
		}
	}
}

// familyError is what went wrong of one family.
func (a *run) familyError(f model.Family) error {
	if a.failed[f] == nil {
		return nil
	}
	return &backend.FamilyError{Family: f, Err: a.failed[f]}
}
