package app

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// TestProxyIsNeededAgain: the listeners that another mode took over from end, unless the mode comes back, be it at the very
// moment.
func TestProxyIsNeededAgain(t *testing.T) {
	d := &relayOfDaemon{log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() { _ = d.end(context.Background()) })
	proxy, _, err := d.open(config.Userspace{}, redirected)
	if err != nil {
		t.Fatal(err)
	}
	k := relay.Key{Port: plan.PortID{Service: model.Name{Namespace: "default", Name: "web"}, Protocol: model.TCP}, List: plan.ListCluster}
	if err := proxy.Put(relay.Target{Key: k, Listen: netip.MustParseAddrPort("127.0.0.1:0")}); err != nil {
		t.Fatal(err)
	}
	d.closeSoon()
	if _, _, err := d.open(config.Userspace{}, redirected); err != nil {
		t.Fatal(err)
	}
	if d.close(); len(d.ports()) != 1 {
		t.Error("nobody listens for the mode that came back")
	}
	d.closeSoon()
	if d.close(); len(d.ports()) != 0 {
		t.Error("listeners are left of a mode that another took over from")
	}
}
