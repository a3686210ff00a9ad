package nftables

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
)

// sharedKey is an element that several Service ports may have: an address of the ports of one Service, an endpoint of
// several Services. It has no pointers, since there are as many as there are endpoints.
type sharedKey struct {
	addr  [16]byte
	port  uint16 // 0 for addresses alone
	proto model.Protocol
	set   setID
}

func (k sharedKey) address() netip.Addr {
	a := netip.AddrFrom16(k.addr)
	if k.set.family() == model.IPv4 {
		a = a.Unmap()
	}
	return a
}

// element is the element itself. An address is commented with the Service that has it.
func (k sharedKey) element(of model.Name) (e nft.Element) {
	a := k.address()
	e.Key.AppendAddr(a)
	if k.port == 0 {
		e.Comment = nft.CleanComment(of.String())
	} else {
		e.Key.AppendAddr(a)
		e.Key.AppendProto(uint8(k.proto))
		e.Key.AppendPort(k.port)
	}
	return e
}

// shared yields the elements that a port may have in common with others, each once.
func (p *port) shared(yield func(sharedKey) bool) {
	more := true
	each := func(k sharedKey) bool { more = yield(k); return more }
	if p.addresses(each); more {
		p.hairpins(each)
	}
}

// addresses yields those of frontends.
func (p *port) addresses(yield func(sharedKey) bool) {
	for _, fe := range p.plan.Frontends {
		if k, ok := addressKey(fe, p.family()); ok && !yield(k) {
			return
		}
	}
}

// hairpins yields those of endpoints that connect to themselves.
func (p *port) hairpins(yield func(sharedKey) bool) {
	cluster, local := &p.lists[0], &p.lists[1]
	for i := range cluster.endpoints {
		if !yield(p.hairpinKey(cluster.endpoints[i].AddrPort)) {
			return
		}
	}
	for i := range local.endpoints {
		a := local.endpoints[i].AddrPort
		if _, twice := cluster.find(a); !twice && !yield(p.hairpinKey(a)) {
			return
		}
	}
}

// shares reports whether shared yields k.
func (p *port) shares(k sharedKey) bool {
	if k.port == 0 {
		return slices.ContainsFunc(p.plan.Frontends, func(fe plan.Frontend) bool {
			own, ok := addressKey(fe, p.family())
			return ok && own == k
		})
	}
	a := netip.AddrPortFrom(k.address(), k.port)
	_, cluster := p.lists[0].find(a)
	_, local := p.lists[1].find(a)
	return cluster || local
}

// compare orders keys, in no order that means anything.
func (k sharedKey) compare(o sharedKey) int {
	return cmp.Or(bytes.Compare(k.addr[:], o.addr[:]), cmp.Compare(k.port, o.port), cmp.Compare(k.proto, o.proto), cmp.Compare(k.set, o.set))
}

// addressKey is that of a frontend's address; a node port has none.
func addressKey(fe plan.Frontend, f model.Family) (sharedKey, bool) {
	set := setExternalIPs
	if fe.Kind == plan.ClusterIP {
		set = setClusterIPs
	}
	return sharedKey{addr: fe.Addr.As16(), set: set.of(f)}, fe.Kind != plan.NodePort
}

// hairpinKey is that of an endpoint that connects to itself.
func (p *port) hairpinKey(a netip.AddrPort) sharedKey {
	return sharedKey{addr: a.Addr().As16(), port: a.Port(), proto: p.plan.ID.Protocol, set: setHairpin.of(p.family())}
}

// isShared reports whether a set has elements that ports share.
func isShared(s setID) bool {
	switch s.ofIPv4() {
	case setHairpin, setClusterIPs, setExternalIPs:
		return true
	}
	return false
}

// references counts the ports in the kernel that have each shared element. There is one for all that is in the kernel,
// and only commit changes it, once the kernel has taken a delta.
type references map[sharedKey]int32

// sharedChange is one more or one less port that has an element.
type sharedChange struct {
	sharedKey
	by int32
	of model.Name // for the comment
}

// gain counts a port that has k, and reports whether it is the first.
func (r references) gain(k sharedKey) bool {
	had := len(r)
	r[k]++
	return len(r) > had
}

// commit counts what a delta changes.
func (r references) commit(d *delta) {
	for _, c := range d.shared {
		if r[c.sharedKey] += c.by; r[c.sharedKey] == 0 {
			delete(r, c.sharedKey)
		}
	}
}
