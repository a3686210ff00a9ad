package app

import (
	"errors"
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Whatever the flags of trace say, they are a packet or wrong input; and a packet is written as it is read.
func FuzzTraceArgs(f *testing.F) {
	f.Add("203.0.113.7", "10.96.0.10:80/TCP", "", "")
	f.Add("203.0.113.7", "10.96.0.10:80", "forward", "eth0")
	f.Add("fd00::9", "[fd00:96::10]:53/udp", "local", "")
	f.Add("::ffff:10.0.0.1", "[::ffff:10.96.0.10]:53/sctp", "", "")
	f.Add("fe80::1%eth0", "[fe80::2%eth0]:1", "", "")
	f.Add("0.0.0.0", "10.96.0.10:0", "air", "")
	f.Add("10.0.0.1", "10.96.0.10:80/", "", "")
	f.Add("10.0.0.1", "10.96.0.10:80/TCP/UDP", "", "")
	f.Fuzz(func(t *testing.T, from, to, via, iface string) {
		q, err := ParseQuestion(from, to, via, iface)
		if err != nil {
			if !errors.Is(err, ErrInput) {
				t.Errorf("error %v, want it to be wrong input", err)
			}
			return
		}
		pkt := q.packet(&plan.Node{})
		if model.FamilyOf(pkt.From) != model.FamilyOf(pkt.To.Addr()) || pkt.To.Port() == 0 || pkt.From.Is4In6() || pkt.From.Zone() != "" {
			t.Errorf("%q, %q: got packet %+v", from, to, pkt)
		}
		again, err := ParseQuestion(q.From.String(), q.To.String()+"/"+q.Protocol.Lower(), via, iface)
		if err != nil || again != q {
			t.Errorf("written as %v → %v/%v it reads as %+v, error %v", q.From, q.To, q.Protocol, again, err)
		}
	})
}

func TestViaFollowsTheSource(t *testing.T) {
	node := &plan.Node{Addresses: []netip.Addr{netip.MustParseAddr("192.168.10.11")}}
	for _, tt := range []struct {
		from, via string
		want      plan.Via
	}{
		{"192.168.10.11", "", plan.ViaLocal},
		{"127.0.0.1", "", plan.ViaLocal},
		{"203.0.113.7", "", plan.ViaForward},
		{"203.0.113.7", "local", plan.ViaLocal},
		{"192.168.10.11", "forward", plan.ViaForward},
	} {
		q, err := ParseQuestion(tt.from, "10.96.0.10:80", tt.via, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := q.packet(node).Via; got != tt.want {
			t.Errorf("from %s, --via %q: %s, want %s", tt.from, tt.via, got, tt.want)
		}
	}
}
