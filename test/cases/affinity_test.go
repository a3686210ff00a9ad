package cases

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// met is where n connections from one client to one address come to, with a pause after each. It stops early when they
// come to more than one endpoint.
func (st *stage) met(to string, n int, pause time.Duration) map[netip.AddrPort]bool {
	st.Helper()
	d := lab.Dial{From: netip.MustParseAddr("10.244.1.50"), To: netip.MustParseAddrPort(to), Protocol: model.TCP, Timeout: limit}
	seen := map[netip.AddrPort]bool{}
	for i := 0; i < n && len(seen) < 2; i++ {
		o, err := st.lab.Host("pods-a").Dial(d)
		if err != nil || o.Action != plan.Forward {
			st.Fatalf("connection %d to %s: %s, %v", i, to, o, err)
		}
		seen[o.Endpoint] = true
		time.Sleep(pause)
	}
	return seen
}

// A client keeps its endpoint while it comes back in time, and only then; each Service remembers by itself.
func TestAffinityTimes(t *testing.T) {
	st := open(t, "affinity-times")
	for _, host := range []string{"pods-a", "pods-b"} {
		if _, err := st.lab.Host(host).ServeAll(model.TCP, 8080); err != nil {
			t.Fatal(err)
		}
	}
	st.objects(1)
	st.start()
	var rules string
	st.eventually(func() error {
		if rules = st.node("", "iptables-save", "-t", "nat"); !strings.Contains(rules, "10.244.2.71:8080") {
			return fmt.Errorf("the daemon has written nothing yet")
		}
		return nil
	})
	for _, seconds := range []string{"1", "86400", "10800"} {
		if want := " --seconds " + seconds + " "; strings.Count(rules, want) != 2 {
			t.Errorf("want two rules with%s:\n%s", want, rules)
		}
	}
	for _, to := range []string{"10.96.20.61:80", "10.96.20.62:80", "10.96.20.63:80"} {
		seen := st.met(to, 40, 0)
		for try := 1; try < 3 && len(seen) > 1 && to == "10.96.20.61:80"; try++ {
			seen = st.met(to, 40, 0) // a busy machine may pause for the second that is the time
		}
		if len(seen) != 1 {
			t.Errorf("connections to %s that follow each other came to %v, want one endpoint", to, seen)
		}
	}
	// The chance that 40 free choices are all the same is 2 to the power of -39; the list of a Service whose time is
	// over must be forgotten, that of the others not.
	if seen := st.met("10.96.20.61:80", 40, 2100*time.Millisecond); len(seen) != 2 {
		t.Errorf("connections further apart than the shortest time came to %v, want both endpoints", seen)
	}
	if seen := st.met("10.96.20.62:80", 40, 0); len(seen) != 1 {
		t.Errorf("connections within the longest time came to %v, want one endpoint", seen)
	}
}
