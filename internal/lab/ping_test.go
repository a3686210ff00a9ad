package lab_test

import (
	"net/netip"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/plan"
)

func TestPing(t *testing.T) {
	l := up(t, lab.Reference())
	for _, tt := range []struct {
		host, from, to string
		want           plan.Action
	}{
		{"pods-a", "10.244.1.50", "192.168.10.11", plan.Forward},
		{"pods-a", "10.244.1.50", "10.244.2.9", plan.Forward},
		{"clients", "2001:db8:77::1", "fd00:244:0:1::50", plan.Forward},
		{"node-a", "", "fd00:10::12", plan.Forward},
		{"node-a", "", "192.168.10.11", plan.Forward},
		{"pods-a", "10.244.1.50", "10.96.0.10", plan.Reject}, // the network does not take it back
		{"pods-a", "fd00:244:0:1::50", "fd00:96::10", plan.Reject},
	} {
		var from netip.Addr
		if tt.from != "" {
			from = netip.MustParseAddr(tt.from)
		}
		got, err := l.Host(tt.host).Ping(from, netip.MustParseAddr(tt.to))
		if err != nil || got.Action != tt.want {
			t.Errorf("%s pings %s: %v, %v, want %s", tt.host, tt.to, got, err, tt.want)
		}
	}
}
