package nftables

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/nstest"
)

// TestRenderLoads: nft takes what is rendered, for every kind of Service and for worlds at random, also in the place of
// what was there before.
func TestRenderLoads(t *testing.T) {
	nstest.Require(t)
	defer loadText(t, "") // the namespace is that of all tests here
	for _, kind := range kinds {
		loadText(t, text(t, compileKind(kind.edit)))
		loadText(t, text(t, compileWith(kind.edit, ipvsOptions())))
	}
	rapid.Check(t, func(rt *rapid.T) {
		loadText(t, text(rt, Compile(plan.Build(gen.Config(rt), gen.Host(rt), gen.Snapshot(rt)), drawOptions(rt))))
	})
}

func loadText(t *testing.T, table string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader("table inet sluice\ndelete table inet sluice\n" + table)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft (Debian package nftables): %v\n%s\n%s", err, out, table)
	}
}
