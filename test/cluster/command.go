package cluster

import "testing"

// Sluice runs a verb of sluice on a node, and returns what it prints. It is fatal if it fails.
func (c *Cluster) Sluice(t testing.TB, node string, args ...string) string {
	t.Helper()
	out, err := c.Node(t, node).Program(program(t, "sluice"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("sluice %v on %s: %v\n%s", args, node, err, out)
	}
	return string(out)
}
