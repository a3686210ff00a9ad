package cluster

import (
	"fmt"
	"os"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

// Main runs the tests of m as [nstest.Main] does, after it has built the programs of a cluster. That comes first since
// there is no way to a module proxy from the tests' own network.
func Main(m *testing.M) {
	if !netns.Isolated() {
		if err := build(); err != nil {
			fmt.Fprintln(os.Stderr, "cluster:", err)
			os.Exit(1)
		}
	}
	nstest.Main(m)
}
