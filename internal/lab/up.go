package lab

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"

	"sluice/internal/kernel/link"
	"sluice/internal/model"
)

// Lab is a running Topology.
type Lab struct {
	topology Topology
	network  *junction
	hosts    map[string]*Host

	mu      sync.Mutex // guards servers
	servers []io.Closer
}

// Up builds the topology in new network namespaces. Nothing of it is left when it fails. The calling process needs
// CAP_NET_ADMIN and CAP_SYS_ADMIN in its namespaces, as root or by [netns.Isolate].
func Up(t Topology) (*Lab, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("build lab: %w", err)
	}
	l := &Lab{topology: t, hosts: map[string]*Host{}}
	if err := l.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("build lab: %w", err), l.Close())
	}
	return l, nil
}

// Host is the machine of that name, or nil.
func (l *Lab) Host(name string) *Host { return l.hosts[name] }

// Node is the machine that Sluice runs on.
func (l *Lab) Node() *Host { return l.hosts[l.topology.Node.Name] }

// Route makes the network hand ranges to a machine from now on, whoever got them so far: a load balancer's address moves.
// The machine is a node or outside, and has an address of each range's family.
func (l *Lab) Route(to *Host, ranges ...netip.Prefix) error {
	if err := l.network.route(to, ranges); err != nil {
		return fmt.Errorf("route to %s: %w", to.Name, err)
	}
	return nil
}

// Close stops the lab's servers and lets go of its namespaces. They end when no process is left in them.
func (l *Lab) Close() error {
	l.mu.Lock()
	closers := l.servers
	l.servers = nil
	l.mu.Unlock()
	for _, h := range l.hosts {
		closers = append(closers, h.ns)
	}
	if l.network != nil {
		closers = append(closers, l.network.ns)
	}
	var errs []error
	for _, c := range closers {
		errs = append(errs, c.Close())
	}
	l.hosts, l.network = nil, nil
	return errors.Join(errs...)
}

func (l *Lab) keep(s *Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = append(l.servers, s)
}

func (l *Lab) build() error {
	network, err := l.buildNetwork()
	if err != nil {
		return err
	}
	for _, site := range l.topology.sites() {
		if err := l.buildSite(network, site); err != nil {
			return err
		}
	}
	for _, m := range l.topology.Outside {
		if err := l.attachGuest(network, m); err != nil {
			return err
		}
	}
	if err := network.route(l.Node(), l.topology.ToNode); err != nil {
		return err
	}
	return l.settle()
}

// buildSite makes a node, its pods, and the routes to them.
func (l *Lab) buildSite(network *junction, site Site) error {
	node, err := l.attach(network, site.Node, router())
	if err != nil {
		return err
	}
	behindNode := &junction{ns: node.ns, gateway: node.Address(model.IPv4), prefix: "pod", families: network.families}
	for _, m := range site.Pods {
		if err := l.attachGuest(behindNode, m); err != nil {
			return err
		}
		if err := network.route(node, m.ranges()); err != nil {
			return err
		}
	}
	return network.refuse(node, l.topology.ToNode)
}

// buildNetwork makes the namespace that stands for the network between the node and everything outside.
func (l *Lab) buildNetwork() (*junction, error) {
	ns, err := newNamespace(router())
	if err != nil {
		return nil, fmt.Errorf("the network: %w", err)
	}
	j := &junction{ns: ns, gateway: netip.AddrFrom4([4]byte{169, 254, 1, 1}), prefix: "net", families: l.topology.families()}
	l.network = j
	h, err := link.Open(ns.Fd())
	if err != nil {
		return nil, fmt.Errorf("the network: %w", err)
	}
	defer h.Close()
	own := []netip.Prefix{netip.PrefixFrom(j.gateway, 32)}
	if slices.Contains(j.families, model.IPv6) {
		// Its ICMPv6 errors need a source that the node forwards to pods, which a link-local address is not.
		own = append(own, netip.MustParsePrefix("fd00:a9fe::1/128"))
	}
	return j, addAll(h, "lo", own)
}

// attachGuest makes a machine that has no others behind it.
func (l *Lab) attachGuest(j *junction, m Machine) error {
	h, err := l.attach(j, m, guest())
	if err != nil {
		return err
	}
	far, err := link.Open(h.ns.Fd())
	if err != nil {
		return err
	}
	defer far.Close()
	if err := j.separate(far, m.AnyIP); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return nil
}

// attach makes a machine and its link to a junction.
func (l *Lab) attach(j *junction, m Machine, role settings) (*Host, error) {
	h := &Host{Machine: m, lab: l}
	var err error
	if h.ns, err = newNamespace(role); err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	l.hosts[m.Name] = h
	if err := j.connect(h); err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return h, nil
}
