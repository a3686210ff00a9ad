package cluster

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TrySluice runs a verb of sluice on a node, with stdin as its input, and returns what it prints. The error has what it
// complains of.
func (n *Node) TrySluice(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := n.Program(program(t, "sluice"), args...)
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("sluice %s on %s: %w\n%s", strings.Join(args, " "), n.Name, err, complaint.String())
	}
	return out.String(), nil
}

// Sluice is TrySluice of a node by its name. It is fatal if it fails.
func (c *Cluster) Sluice(t testing.TB, node string, args ...string) string {
	t.Helper()
	out, err := c.Node(t, node).TrySluice(t, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
