package app

import (
	"slices"
	"strings"
	"testing"

	"sluice/internal/backend/userspace"
	"sluice/internal/config"
	"sluice/internal/status"
)

// What the proxy itself does not take is told as that, and once, however often the Service changes.
func TestWhatTheProxyDeclines(t *testing.T) {
	n := newNodeOf(t, config.ModeUserspace)
	sctp := func(endpoint string) string {
		return strings.ReplaceAll(udp("signal", "10.96.0.10", 2905, 0, endpoint), "UDP", "SCTP")
	}
	n.put(sctp("10.244.2.5:2905"))
	n.start()
	n.eventually("the status has the reason", func() bool {
		r, err := askDaemon()
		return err == nil && slices.ContainsFunc(r.Ports, func(p status.Port) bool { return p.Error == userspace.ErrSCTP.Error() })
	})
	n.put(sctp("10.244.2.6:2905"), udp("dns", "10.96.0.11", 53, 0, "10.244.2.5:53"))
	n.eventually("the change is followed", n.asPlanned)
	n.stop()
	if told := strings.Count(n.said(), `msg="a Service port is refused; all others are served" "service port"="default/signal (SCTP, IPv4)" by="the proxy"`); told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}
