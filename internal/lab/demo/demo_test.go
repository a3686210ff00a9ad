package demo_test

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/cli"
	"sluice/internal/lab/demo"
	"sluice/internal/testkit/nstest"
)

// TestMain makes this test program the sluice that the demo runs on its node, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "render", "diff", "trace", "cleanup"}, os.Args[1]) {
		os.Exit(asSluice())
	}
	nstest.Main(m)
}

func asSluice() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// The whole story is told in each mode, and everything in it is as it should be. Mode nftables needs no program at all, so
// its story has none to find.
func TestStory(t *testing.T) {
	nstest.Require(t)
	nftables := func(context.Context) string { return "nftables" }
	tests := []struct {
		name    string
		path    string
		options demo.Options
		want    []string
	}{
		{"nftables", "", demo.Options{Choose: nftables}, []string{"services4     10.10.10.2 . tcp . 22", "nft delete table inet sluice", "9. "}},
		{"iptables", os.Getenv("PATH"), demo.Options{Mode: "iptables"}, []string{"KUBE-SVC-ZMVASYV5VVSOQD2Z", "KUBE-SEP-JJDDRQDQBMLIVXO7", "9. "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			var out strings.Builder
			tt.options.Out = &out
			status, err := demo.Run(t.Context(), tt.options)
			if status != 0 || err != nil || strings.Contains(out.String(), "FAIL") {
				t.Errorf("status %d, error %v\n%s", status, err, out.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the story does not tell of %s", want)
				}
			}
		})
	}
}
