package bench

import (
	"fmt"
	"testing"

	"sluice/internal/config"
	"sluice/internal/kernel/splice"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// otherFiles are those that the proxy may have open beside its connections: listeners, pipes, those of the program.
const otherFiles = 350

// BenchmarkUserspaceHeld measures the memory of a daemon that holds many connections and sessions.
func BenchmarkUserspaceHeld(b *testing.B) {
	nstest.Require(b)
	for b.Loop() {
		t := figures.Grid{Head: []string{"the daemon", "MiB", "KiB for each", "MiB at its peak", "open files", "goroutines"}}
		heldConnections(b, &t)
		heldSessions(b, &t)
		publish(b, "userspace-held", t.String())
	}
}

// room is how many connections one process may have, 10,000 if the limit of open files allows.
func room(b *testing.B) int {
	b.Helper()
	files, err := splice.OpenFiles()
	if err != nil {
		b.Fatal(err)
	}
	return min(10_000, (files-otherFiles)/2/100*100)
}

func heldConnections(b *testing.B, t *figures.Grid) {
	b.Helper()
	n := room(b)
	// Of what is free no Service gets all.
	w := newWay(b, config.ModeUserspace, fmt.Sprintf("maxConnections: %d", n+n/20))
	defer w.end()
	w.echo()
	before := w.look()
	t.Add(before.row("at rest", before, 0)...)
	clients := newCrew(w, "tcp")
	w.all(n, clients.open(n, 0, wayServices))
	t.Add(w.look().row(fmt.Sprintf("%d TCP connections, each after a message and its answer", n), before, n)...)
	w.all(n, clients.talk())
	t.Add(w.look().row("all have had another", before, n)...)
	clients.leave()
	t.Add(w.look().row("all are closed", before, 0)...)
}

func heldSessions(b *testing.B, t *figures.Grid) {
	b.Helper()
	const few, many = 1000, 10_000
	// Of what there may be no client gets more than a quarter.
	w := newWay(b, config.ModeUserspace, fmt.Sprintf("maxSessions: %d, udpIdleTimeout: 10m", many+many/20))
	defer w.end()
	w.echo()
	before := w.look()
	clients := newCrew(w, "udp")
	defer clients.leave()
	w.all(few, clients.open(few, wayUDP, 1))
	t.Add(w.look().row(fmt.Sprintf("%d UDP sessions", few), before, few)...)
	w.all(many-few, clients.open(many-few, wayUDP, 1))
	t.Add(w.look().row(fmt.Sprintf("%d UDP sessions", many), before, many)...)
	w.all(many, clients.talk())
}

// all is an error unless all of n were served.
func (w *way) all(n int, r replies) {
	w.Helper()
	if r.served != n {
		w.Errorf("of %d clients %+v", n, r)
	}
}
