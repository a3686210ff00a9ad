package app

import (
	"context"
	"log/slog"
	"testing"

	"sluice/internal/config"
)

// What rules led to closes once, unless rules lead there again by then: that the proxy is wanted for something else is no
// reason to keep it.
func TestListenersOfAModeThatLeft(t *testing.T) {
	r := &relayOfDaemon{log: slog.New(slog.DiscardHandler)}
	open := func(wanted sockets) {
		t.Helper()
		if _, _, err := r.open(config.Userspace{}, wanted); err != nil {
			t.Fatal(err)
		}
	}
	open(redirected)
	t.Cleanup(func() {
		if err := r.end(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r.closeSoon()
	first := r.closing
	r.closeSoon()
	if first.Stop() {
		t.Error("two timers run")
	}
	if open(direct); r.closing == nil {
		t.Error("listeners stay, for the sake of those at loopback addresses")
	}
	second := r.closing
	if open(redirected); r.closing != nil || second.Stop() {
		t.Error("listeners close that rules lead to again")
	}
}
