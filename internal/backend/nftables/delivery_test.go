package nftables

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

// TestDeliveryChanges: one process hands the table to another that leaves packets to ipvs, and that one back to one that
// does not. Connections that are open go on, and counting goes on from where it was.
func TestDeliveryChanges(t *testing.T) {
	l := upLab(t)
	affine := serviceWith(2, addrsOf("10.244.1.6"), func(s *model.Service) { s.Affinity = time.Hour })
	w := newRig(t, serviceWith(1, addrsOf("10.244.1.5"), nil), affine)
	dnat := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), dnat, w)
	old := connect(t, l, 1, "10.244.1.5:8080")
	sticks := connect(t, l, 2, "10.244.1.6:8080")

	own(t, l.Node(), clusterIP(1).String(), clusterIP(2).String())
	v := &rig{TB: t, opts: ipvsOptions(), planner: w.planner, rules: Compile(w.planner.Plan(), ipvsOptions())}
	ipvs := New(ipvsOptions(), Deps{})
	applyAt(t, l.Node(), ipvs, v)
	echo(t, old)
	echo(t, sticks)
	if got := spread(t, l, 1, 2); got.Failed[plan.Reject] != 2 {
		t.Errorf("without virtual servers: %+v", got)
	}
	if n := connections(t, l, ipvs, 1); n != 3 {
		t.Errorf("%d connections counted, want 3", n)
	}
	if got := applyAt(t, l.Node(), New(ipvsOptions(), Deps{}), v.restarted()); got.Written != 0 {
		t.Errorf("a new process wrote %d", got.Written)
	}

	again := w.restarted()
	back := New(DefaultOptions(), Deps{})
	applyAt(t, l.Node(), back, again)
	echo(t, old)
	echo(t, sticks)
	connect(t, l, 1, "10.244.1.5:8080")
	if n := connections(t, l, back, 1); n != 4 {
		t.Errorf("%d connections counted, want 4", n)
	}
}

// seen counts packets where ipvs would take them, by their marks.
const seen = `
table inet seen {
	counter led { }
	counter marked { }
	counter plain { }
	chain look {
		meta mark LED counter name led
		meta mark 0x4000 counter name marked
		meta mark 0 counter name plain
	}
	chain input {
		type filter hook input priority 98;
		iifname != "lo" tcp dport 80 jump look
	}
	chain output {
		type filter hook output priority -99;
		tcp dport 80 jump look
	}
}`

// TestMarksOfPackets: ipvs meets packets of clients outside with the mark that the Ruleset tells, where the policy is
// Local, and those of this node with the one that masquerades. Other packets have none.
func TestMarksOfPackets(t *testing.T) {
	l := upLab(t)
	own(t, l.Node(), "192.0.2.1", "192.0.2.2", clusterIP(1).String())
	w := newRigWith(t, ipvsOptions(),
		serviceWith(1, addrsOf("10.244.1.5"), local),
		serviceWith(2, addrsOf("10.244.1.5"), func(s *model.Service) {
			local(s)
			s.ExternalPolicy, s.LoadBalancerIPs = model.PolicyCluster, addrsOf("192.0.2.2")
		}))
	applyAt(t, l.Node(), New(ipvsOptions(), Deps{}), w)
	mark, ok := w.rules.Mark(portID(1))
	if _, two := w.rules.Mark(portID(2)); !ok || two {
		t.Fatalf("marks: %v", marksOf(w.rules))
	}
	nft := func(stdin string, args ...string) string {
		cmd := l.Node().Command(t.Context(), "nft", args...)
		cmd.Stdin = strings.NewReader(stdin)
		return succeed(t, cmd)
	}
	for _, tt := range []struct{ host, from, to, want string }{
		{"clients", "203.0.113.7", "192.0.2.1", "led"},
		{"pods-a", "10.244.1.50", "192.0.2.1", "plain"},
		{"node-a", "", "192.0.2.1", "marked"},
		{"clients", "203.0.113.7", "192.0.2.2", "marked"},
		{"pods-a", "10.244.1.50", "192.0.2.2", "marked"},
		{"clients", "203.0.113.7", clusterIP(1).String(), "marked"},
		{"pods-a", "10.244.1.50", clusterIP(1).String(), "plain"},
		{"node-a", "", clusterIP(1).String(), "marked"},
	} {
		nft("table inet seen\ndelete table inet seen\n"+strings.ReplaceAll(seen, "LED", fmt.Sprint(mark)), "-f", "-")
		d := lab.Dial{To: netip.AddrPortFrom(netip.MustParseAddr(tt.to), 80), Protocol: model.TCP}
		if tt.from != "" {
			d.From = netip.MustParseAddr(tt.from)
		}
		if got, err := l.Host(tt.host).Dial(d); err != nil || got.Action != plan.Reject {
			t.Errorf("%s to %s: %v, %v", tt.host, tt.to, got, err)
		}
		for _, counter := range []string{"led", "marked", "plain"} {
			none := strings.Contains(nft("", "list", "counter", "inet", "seen", counter), "packets 0")
			if none == (counter == tt.want) {
				t.Errorf("%s to %s: want packets with the mark %s alone, but of %s there are none: %v", tt.host, tt.to, tt.want, counter, none)
			}
		}
	}
}
