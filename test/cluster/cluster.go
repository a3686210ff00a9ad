package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"sluice/internal/lab"
	"sluice/internal/testkit/nstest"
)

// Cluster is a running cluster. Its methods that take a testing.TB fail that test, so that subtests can share a cluster.
type Cluster struct {
	*ControlPlane
	// Lab is the network: the nodes by their names, "control", and "clients" for all of 203.0.113.0/24 and
	// 2001:db8:77::/64.
	Lab *lab.Lab
	// Client is a cluster administrator's.
	Client kubernetes.Interface
	// Folder holds logs, certificates and configurations. It is kept by `go test -artifacts`.
	Folder string

	options Options
	nodes   []*Node
	kubelet *kubelet
}

// Start makes a cluster that lasts until the test ends. Nodes are registered and no proxy runs yet.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	nstest.RequireRoot(t, "kube-apiserver's files, and mounts for each node")
	c := &Cluster{options: o, Folder: t.ArtifactDir()}
	var err error
	if c.Lab, err = lab.Up(o.topology()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Lab.Close(); err != nil {
			t.Error(err)
		}
	})
	c.ControlPlane = startControlPlane(t, c.Lab.Host("control"), c.Folder, o)
	c.Client = c.ControlPlane.client(t)
	for i, n := range o.nodes() {
		c.nodes = append(c.nodes, &Node{Host: c.Lab.Host(n.Name), Pods: c.Lab.Host(podsOf(n.Name)), spec: n, index: i})
	}
	c.kubelet = startKubelet(t, c)
	c.grant(t)
	return c
}

// Node is the node of that name.
func (c *Cluster) Node(t testing.TB, name string) *Node {
	t.Helper()
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("there is no node %q", name)
	return nil
}

// Clients is the machine of everyone outside.
func (c *Cluster) Clients() *lab.Host { return c.Lab.Host("clients") }

// Announce makes the network hand addresses or ranges to a node from now on: those of ExternalRanges and ServiceRanges
// go to the first node otherwise.
func (c *Cluster) Announce(t testing.TB, node string, ranges ...string) {
	t.Helper()
	if err := c.Lab.Route(c.Node(t, node).Host, prefixes(strings.Join(ranges, ","))...); err != nil {
		t.Fatal(err)
	}
}

// addresses reads what this package itself has written.
func addresses(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// prefixes reads ranges, and addresses as ranges of one, between commas.
func prefixes(list string) (all []netip.Prefix) {
	for s := range strings.SplitSeq(list, ",") {
		if a, err := netip.ParseAddr(s); err == nil {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// url is the address of the API server.
func url() string { return fmt.Sprintf("https://%s:%s", apiAddress, apiPort) }

// ctx is for requests that end with the API server's answer; client-go's own limits hold.
func ctx() context.Context { return context.Background() }
