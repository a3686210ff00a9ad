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
	if len(os.Args) > 1 && slices.Contains([]string{"run", "trace", "cleanup"}, os.Args[1]) {
		os.Exit(asSluice())
	}
	nstest.Main(m)
}

func asSluice() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// The whole story is told, and everything in it is as it should be.
func TestStory(t *testing.T) {
	nstest.Require(t)
	var out strings.Builder
	status, err := demo.Run(t.Context(), demo.Options{Out: &out})
	if status != 0 || err != nil || strings.Contains(out.String(), "FAIL") {
		t.Errorf("status %d, error %v\n%s", status, err, out.String())
	}
	for _, want := range []string{"KUBE-SVC-ZMVASYV5VVSOQD2Z", "KUBE-SEP-JJDDRQDQBMLIVXO7", "9. "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story does not tell of %s", want)
		}
	}
}
