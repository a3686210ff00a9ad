package churn

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"sluice/internal/testkit/nstest"
)

var seed = flag.Uint64("seed", 0, "start the random numbers from this `seed`; 0: another one each time")

func TestMain(m *testing.M) {
	Main()
	nstest.Main(m)
}

func TestChurn(t *testing.T) {
	nstest.RequireRoot(t, "the kernel limits an ordinary user's transactions (net.core.wmem_default)")
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	fmt.Fprintf(os.Stderr, "%s: -seed=%d\n", t.Name(), *seed)
	c := Config{Services: 2000, Stable: 50, PerSecond: 200, Changes: 1000, Seed: *seed}
	if testing.Short() {
		c.Services, c.Changes = 500, 200
	}
	r := Run(t, c)
	for _, failed := range r.Failed {
		t.Error(failed)
	}
	if r.Connections == 0 {
		t.Error("nobody connected")
	}
	if r.Repeated > 0 {
		t.Errorf("%d connections had to send their first packet again", r.Repeated)
	}
	t.Logf("%d changes in %d writes; %d connections", c.Changes, r.Writes, r.Connections)
}
