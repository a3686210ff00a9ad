package plan

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// NodePorts says which of the node's addresses of one family accept node ports.
type NodePorts struct {
	// All is every address of the node, whatever it gets later, save loopback.
	All bool
	// Addresses are those that do if not All: sorted, none of them loopback.
	Addresses []netip.Addr
	// Loopback adds 127.0.0.0/8, for clients on the node itself.
	Loopback bool
	// Proxied is set where the daemon itself answers at the family's loopback address. Rules have nothing to do there.
	Proxied bool
	// Unlisted is set where All only comes from a list of addresses that names none of this family. kube-proxy
	// reads such a list as unset, so Sluice does too; but it opens more than the list's author may expect.
	Unlisted bool
}

// Serves reports whether a node port answers at addr, which is an address of this node.
func (n NodePorts) Serves(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return n.Loopback && addr.Is4()
	}
	return n.All || slices.Contains(n.Addresses, addr)
}

var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

func nodePorts(cfg Config, f model.Family, node *Node) NodePorts {
	listed := listedPrefixes(cfg.NodePortAddresses, f, node)
	// The keyword primary speaks for both families: a family without an address gets no node ports, where
	// kube-proxy would open all of its addresses.
	unlisted := len(listed) == 0 && !cfg.NodePortAddresses.Primary
	n := NodePorts{All: unlisted || slices.ContainsFunc(listed, isZero)}
	n.Unlisted = unlisted && !cfg.NodePortAddresses.empty()
	own := [2]netip.Prefix{loopback4, loopback6}[f]
	loopback := slices.ContainsFunc(listed, func(p netip.Prefix) bool { return !isZero(p) && p.Overlaps(own) })
	n.Loopback = f == model.IPv4 && cfg.LocalhostNodePorts && (n.All || loopback)
	n.Proxied = cfg.LocalhostProxy && loopback
	if n.All {
		return n
	}
	for _, a := range node.Addresses {
		in := func(p netip.Prefix) bool { return p.Contains(a) }
		if !a.IsLoopback() && slices.ContainsFunc(listed, in) {
			n.Addresses = append(n.Addresses, a)
		}
	}
	return n
}

// listedPrefixes is what the list says of family f.
func listedPrefixes(list NodePortAddresses, f model.Family, node *Node) (ps []netip.Prefix) {
	if list.All {
		ps = append(ps, netip.PrefixFrom(f.Unspecified(), 0))
	}
	if p := node.Primary[f]; list.Primary && p.IsValid() && !p.IsLoopback() {
		ps = append(ps, netip.PrefixFrom(p, f.Bits()))
	}
	if list.Localhost {
		ps = append(ps, [2]netip.Prefix{loopback4, loopback6}[f])
	}
	for _, p := range list.Prefixes {
		if model.FamilyOf(p.Addr()) == f {
			ps = append(ps, p)
		}
	}
	return ps
}

func (l NodePortAddresses) empty() bool {
	return !l.All && !l.Primary && !l.Localhost && len(l.Prefixes) == 0
}

func isZero(p netip.Prefix) bool { return p.Bits() == 0 }
