package cases

import (
	"net/netip"
	"os"
	"testing"

	"sluice/internal/iptables/rules"
	"sluice/internal/testkit/flow"
	"sluice/internal/trace/iptwalk"
)

// In somebody's dump the probabilities rise from rule to rule, and yet each endpoint gets a fifth: a walk tells the
// effective share. Walked refuses shares that are not equal.
func TestSharesInADump(t *testing.T) {
	f, err := os.Open("testdata/five-endpoints.iptables")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dump, err := rules.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	host := iptwalk.Host{Addrs: []netip.Addr{netip.MustParseAddr("192.168.10.11")}}
	const all = "10.244.1.1:8080 10.244.1.2:8080 10.244.1.3:8080 10.244.1.4:8080 10.244.1.5:8080"
	for _, line := range []string{
		"pod 10.244.1.50 -> 10.96.10.16:80/TCP: forward " + all + " masquerade=no",
		"pod 10.244.1.3 -> 10.96.10.16:80/TCP: forward " + all + " masquerade=10.244.1.3:8080",
		"node 192.168.10.11 -> 10.96.10.16:80/TCP: forward " + all + " masquerade=yes",
	} {
		want, err := flow.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := flow.Walked(iptwalk.Walk(dump, want.Packet, host))
		if err != nil || !got.Equal(want.Want) {
			t.Errorf("%s\n\tgot: %s, %v", want, got, err)
		}
	}
}
