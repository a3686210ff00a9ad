package plan

import "slices"

// EndpointsInUse is how many endpoints any client at any frontend may be sent to.
func (p *Port) EndpointsInUse() int {
	n := 0
	if p.Uses(ListCluster) {
		n = len(p.Cluster)
	}
	if !p.Uses(ListLocal) {
		return n
	}
	if n == 0 {
		return len(p.Local)
	}
	for _, e := range p.Local {
		if _, both := slices.BinarySearchFunc(p.Cluster, e, byAddrPort); !both {
			n++
		}
	}
	return n
}

func byAddrPort(a, b Endpoint) int { return a.AddrPort.Compare(b.AddrPort) }

// Uses reports whether some client at some frontend is sent to endpoints of a list.
func (p *Port) Uses(l List) bool {
	forwards := func(r Route) bool { return r.Action == Forward && r.List == l }
	for _, f := range p.Frontends {
		access := p.Access(f.Kind)
		if slices.ContainsFunc(access[:], forwards) {
			return true
		}
	}
	return false
}
