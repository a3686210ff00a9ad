package tcp_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/relay/tcp"
)

// Both peers of an idle connection are asked whether they are still there, after a minute. Go's own sockets, such as
// those of the test, ask after 15 seconds.
func TestIdlePeersAreAsked(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{}, endpoint(t, echo))
	client := r.dial(t)
	send(t, client, "x")
	receive(t, client, "x")
	until(t, "both are to be asked", func() bool { return asking(t, 30, 61) == 2 })
}

// asking is how many sockets are to ask their peer within some seconds from now.
func asking(t *testing.T, least, most int64) (n int) {
	t.Helper()
	table, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		timer, when, ok := strings.Cut(strings.Fields(line)[5], ":")
		if !ok || timer != "02" { // that of keep-alive
			continue
		}
		hundredths, err := strconv.ParseInt(when, 16, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if s := hundredths / 100; least <= s && s <= most {
			n++
		}
	}
	return n
}
