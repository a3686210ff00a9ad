package bench_test

import (
	"net/netip"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/test/cluster"
)

// arena is the cluster in which all take turns.
type arena struct {
	*testing.B
	*cluster.Cluster
	subjects []*subject
	hearing  *hearing
	version  int // of the endpoint that was last put in another's place
}

// newArena makes a cluster that has all its objects and no proxy yet. Its controllers have nothing to do with these
// objects, and end, so that they take no time from anybody.
func newArena(b *testing.B, subjects []*subject) *arena {
	b.Helper()
	var o cluster.Options
	for _, s := range subjects {
		o.Nodes = append(o.Nodes, cluster.NodeSpec{Name: s.node})
	}
	a := &arena{B: b, Cluster: cluster.Start(b, o), subjects: subjects}
	a.Controllers.Stop(b)
	if _, err := a.Clients().ServeAll(model.TCP, targetPort); err != nil {
		b.Fatal(err)
	}
	a.fill()
	a.hearing = a.listen()
	for i, s := range subjects {
		s.arena, s.index, s.host, s.times = a, i, a.Node(b, s.node), map[string]*timing{}
	}
	return a
}

// line is the way of a connection from a pod of the subject's node to a Service.
func (s *subject) line(to netip.Addr) line {
	return line{client: s.host.Pods, from: s.pod(0), to: netip.AddrPortFrom(to, port)}
}

// pod is the address of one of the node's pods.
func (s *subject) pod(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 244, byte(1 + s.index), byte(10 + i)})
}

// clients are some of those who use the node: the machine they are on, and their address, not valid for the machine's own.
func (s *subject) clients() map[*lab.Host][]netip.Addr {
	return map[*lab.Host][]netip.Addr{s.host.Pods: {s.pod(1), s.pod(2)}, s.host.Host: {{}}}
}
