package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/config"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// heldAtMost is the limit of connections, and that of sessions, of a daemon that is asked for three times as many.
const heldAtMost = 3000

// BenchmarkUserspaceLimit asks for more than there may be.
func BenchmarkUserspaceLimit(b *testing.B) {
	nstest.Require(b)
	for b.Loop() {
		t := figures.Grid{Head: []string{
			fmt.Sprintf("%d asked for, %d may be", 3*heldAtMost, heldAtMost), "served", "refused", "open then", "the next one",
			"MiB before", "at the limit", "at its peak", "open files",
		}}
		for _, o := range []onslaught{
			{"TCP connections to one Service", "tcp", 0, 1, 1},
			{fmt.Sprintf("TCP connections to %d Services", wayServices-1), "tcp", 0, wayServices - 1, wayServices - 1},
			{"UDP sessions", "udp", wayUDP, 1, wayUDP},
		} {
			t.Add(o.run(b)...)
		}
		publish(b, "userspace-limit", t.String())
	}
}

// onslaught is clients of so many Services from the first on, and one of another Service at the end.
type onslaught struct {
	what, network         string
	first, services, next int
}

func (o onslaught) run(b *testing.B) []string {
	b.Helper()
	w := newWay(b, config.ModeUserspace, fmt.Sprintf("maxConnections: %[1]d, maxSessions: %[1]d", heldAtMost))
	defer w.end()
	w.echo()
	before := w.look()
	clients := newCrew(w, o.network)
	defer clients.leave()
	r := clients.open(3*heldAtMost, o.first, o.services)
	full, open := w.look(), w.open(o.network)
	if r.refused > 0 && !strings.Contains(w.daemon.Log(), "connections are refused: too many are open") {
		b.Errorf("%s: the daemon does not tell that it refuses:\n%s", o.what, w.daemon.Log())
	}
	next := "refused"
	if clients.open(1, o.next, 1).served == 1 {
		next = "served"
	}
	if open > heldAtMost {
		b.Errorf("%s: %d are open: more than there may be", o.what, open)
	}
	return []string{
		o.what, strconv.Itoa(r.served), strconv.Itoa(r.refused), strconv.Itoa(open), next,
		mebibytes(before.memory), mebibytes(full.memory), mebibytes(full.peak), strconv.Itoa(full.files),
	}
}
