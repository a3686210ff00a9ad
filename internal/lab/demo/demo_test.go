package demo_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/app"
	"sluice/internal/cli"
	"sluice/internal/lab/demo"
	"sluice/internal/testkit/nstest"
)

// TestMain makes this test program the sluice that the demo runs on its node, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "render", "diff", "trace", "status", "cleanup"}, os.Args[1]) {
		os.Exit(asSluice())
	}
	nstest.Main(m)
}

func asSluice() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// The whole story is told in each mode, and everything in it is as it should be. Where there is nf_tables no program is
// needed but in mode iptables, so the other stories have none to find.
func TestStory(t *testing.T) {
	nftables := func(context.Context) string { return "nftables" }
	tests := []struct {
		mode    string // empty: what is chosen
		path    string
		require func(testing.TB)
		want    []string
	}{
		{"", "", nstest.Require, []string{"services4     10.10.10.2 . tcp . 22", "nft delete table inet sluice", "9. "}},
		{"iptables", os.Getenv("PATH"), nstest.Require, []string{"KUBE-SVC-ZMVASYV5VVSOQD2Z", "KUBE-SEP-JJDDRQDQBMLIVXO7", "9. "}},
		{"ipvs", "", nstest.RequireIPVS, []string{"TCP  10.254.162.44:3306 rr", "ipvsadm -D -t 10.254.162.44:3306", "9. "}},
		{"userspace", "", nstest.Require, []string{"# proxy at 192.168.10.11:", "given to the next", "--take-over", "10. "}},
	}
	for _, tt := range tests {
		t.Run(cmp.Or(tt.mode, "chosen"), func(t *testing.T) {
			tt.require(t)
			t.Setenv("PATH", tt.path)
			var out strings.Builder
			status, err := demo.Run(t.Context(), demo.Options{Mode: tt.mode, Try: app.TryMode, Choose: nftables, Out: &out})
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

// A mode that this kernel cannot do is told in one sentence, before the story begins.
func TestModeThatTheKernelLacks(t *testing.T) {
	nstest.Require(t)
	lacks := errors.New("this kernel lacks it")
	var out strings.Builder
	status, err := demo.Run(t.Context(), demo.Options{
		Mode: "ipvs", Out: &out,
		Choose: func(context.Context) string { return "nftables" },
		Try:    func(context.Context, string) error { return lacks },
	})
	if status != 1 || !errors.Is(err, lacks) || out.Len() > 0 {
		t.Errorf("status %d, error %v, told %q", status, err, &out)
	}
}
