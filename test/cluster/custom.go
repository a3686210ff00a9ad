package cluster

import (
	"testing"

	"sluice/internal/kernel/netns"
)

// StartAs runs sluice on a node until the test ends, in a way of the test's own: command is given the path of the
// program and returns how to run it, for each start anew. The proxy's Config is the test's to set.
func (c *Cluster) StartAs(t testing.TB, node, name string, command func(sluice string) *netns.Cmd) *Proxy {
	t.Helper()
	path := program(t, "sluice")
	p := c.newProxy(t, c.Node(t, node), name, func() *netns.Cmd { return command(path) })
	p.Start(t)
	return p
}
