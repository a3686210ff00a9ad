package ipvs

import "context"

// Compare tells what Apply would do to the kernel's virtual servers and to the device, as commands. What drains is as it
// should be. The rules beside are for who made them to compare; r takes on the marks that theirs have, and has them refuse
// what drains.
func (b *Backend) Compare(ctx context.Context, r *Ruleset) (lines []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := b.adopt(ctx, r); err != nil {
		return nil, err
	}
	have, err := b.observe(ctx)
	if err != nil {
		return nil, err
	}
	ops := r.differences(have)
	r.linger(have, r.lingers(have, ops))
	for _, o := range ops {
		lines = append(lines, o.String())
	}
	return lines, nil
}

// lingers are the virtual servers that nobody wants and that stay after ops.
func (r *Ruleset) lingers(have *state, ops []operation) map[Server]struct{} {
	left := map[Server]struct{}{}
	for s, h := range have.servers {
		if h.ours && r.server(s) == nil {
			left[s] = struct{}{}
		}
	}
	for _, o := range ops {
		if o.verb == deleteServer {
			delete(left, o.server)
		}
	}
	return left
}

// differences are what turns a state of the kernel into what is wanted.
func (r *Ruleset) differences(have *state) (ops []operation) {
	if !have.device {
		ops = append(ops, operation{verb: addDevice})
	}
	todo := newDirt(false)
	for s := range r.places {
		todo.servers[s] = struct{}{}
	}
	for s := range have.servers {
		todo.servers[s] = struct{}{}
	}
	var d delta
	for _, s := range sortedServers(todo.servers) {
		d.server(s, r.server(s), have.servers[s])
	}
	ops = append(ops, d.before...)
	for a := range r.claims {
		todo.addrs[a] = struct{}{}
	}
	for a := range have.addrs {
		todo.addrs[a] = struct{}{}
	}
	for _, a := range sortedAddrs(todo.addrs) {
		switch _, has := have.addrs[a]; {
		case r.binds(a) && !has:
			ops = append(ops, operation{verb: addAddress, addr: a})
		case has && !r.binds(a) && have.at[a] == 0:
			ops = append(ops, operation{verb: deleteAddress, addr: a})
		}
	}
	for _, o := range d.after {
		if !have.drained(o) {
			ops = append(ops, o)
		}
	}
	return ops
}

// drained reports whether an operation takes away what was draining.
func (s *state) drained(o operation) bool {
	h := s.servers[o.server]
	if h == nil {
		return false
	}
	switch o.verb {
	case deleteDestination:
		return h.destinations[o.destination].weight == 0
	case deleteServer:
		for _, d := range h.destinations {
			if d.weight > 0 {
				return false
			}
		}
		return len(h.destinations) > 0
	}
	return false
}
