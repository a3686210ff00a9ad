package bench

import (
	"path/filepath"
	"testing"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/testkit/figures"
)

// publish prints a result and, if asked to, puts it into the docs.
func publish(b *testing.B, name, result string) {
	b.Helper()
	figures.Publish(b, filepath.Join("..", "..", "docs", "benchmarks.md"), name, result, *update)
}

// machine is what the figures depend on.
func machine(b *testing.B) string {
	b.Helper()
	tools, err := iptexec.Find(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	return figures.Machine(b) + ", iptables " + string(tools.Version)
}
