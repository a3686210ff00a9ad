package lab_test

import (
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// rules is what a proxy would write for a Service with one pod, by hand: translated for three protocols, rejected at
// port 81, dropped at port 82.
const rules = `*nat
-A PREROUTING -d VIP -p tcp --dport 80 -j DNAT --to-destination POD:8080
-A PREROUTING -d VIP -p udp --dport 80 -j DNAT --to-destination POD:8080
-A PREROUTING -d VIP -p sctp --dport 80 -j DNAT --to-destination POD:8080
-A OUTPUT -d VIP -p tcp --dport 80 -j DNAT --to-destination POD:8080
-A OUTPUT -d VIP -p udp --dport 80 -j DNAT --to-destination POD:8080
-A OUTPUT -d VIP -p sctp --dport 80 -j DNAT --to-destination POD:8080
-A POSTROUTING -s ADDR -d ADDR -j MASQUERADE
COMMIT
*filter
-A FORWARD -d VIP -p tcp --dport 81 -j REJECT
-A FORWARD -d VIP -p udp --dport 81 -j REJECT
-A FORWARD -d VIP -p sctp --dport 81 -j REJECT
-A OUTPUT -d VIP -p tcp --dport 81 -j REJECT
-A OUTPUT -d VIP -p udp --dport 81 -j REJECT
-A OUTPUT -d VIP -p sctp --dport 81 -j REJECT
-A FORWARD -d VIP -p tcp --dport 82 -j DROP
-A FORWARD -d VIP -p udp --dport 82 -j DROP
-A FORWARD -d VIP -p sctp --dport 82 -j DROP
-A OUTPUT -d VIP -p tcp --dport 82 -j DROP
-A OUTPUT -d VIP -p udp --dport 82 -j DROP
-A OUTPUT -d VIP -p sctp --dport 82 -j DROP
COMMIT
`

// side is one family's part of TestTranslation.
type side struct {
	program        string
	vip, pod, node netip.Addr
	clients        map[string]string // by host
}

// flow is a connection and what must become of it.
type flow struct {
	host string
	lab.Dial
	want lab.Outcome // of the peer, only the address
}

// A Service works from everywhere: from a pod to itself, from another pod in the same namespace, from the node, from
// outside; and what the rules say is what Dial reports.
func TestTranslation(t *testing.T) {
	sides := []side{
		{
			"iptables-restore", addr("10.96.0.1"), addr("10.244.1.82"), addr("192.168.10.11"),
			map[string]string{"pods-a": "10.244.1.50", "pods-b": "10.244.2.9", "node-a": "192.168.10.11", "clients": "203.0.113.77"},
		},
		{
			"ip6tables-restore", addr("fd00:96::1"), addr("fd00:244:0:1::82"), addr("fd00:10::11"),
			map[string]string{"pods-a": "fd00:244:0:1::50", "pods-b": "fd00:244:0:2::9", "node-a": "fd00:10::11", "clients": "2001:db8:77::9"},
		},
	}
	l := up(t, lab.Reference())
	var wg sync.WaitGroup
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		serve(t, l.Host("pods-a"), p, 8080)
	}
	for _, s := range sides {
		pod := netip.AddrPortFrom(s.pod, 8080)
		target := strings.TrimSuffix(pod.String(), ":8080")
		restore(t, l.Node(), s.program, strings.NewReplacer("VIP", s.vip.String(), "POD", target, "ADDR", s.pod.String()).Replace(rules))
		for _, f := range s.flows(pod) {
			wg.Go(func() { f.check(t, l) })
		}
	}
	wg.Wait()
}

func (s side) flows(pod netip.AddrPort) (all []flow) {
	seenAs := func(client netip.Addr) lab.Outcome {
		return lab.Outcome{Action: plan.Forward, Endpoint: pod, Peer: netip.AddrPortFrom(client, 0)}
	}
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		from := func(client netip.Addr, port uint16) lab.Dial {
			return lab.Dial{From: client, To: netip.AddrPortFrom(s.vip, port), Protocol: p}
		}
		for host, client := range s.clients {
			all = append(
				all,
				flow{host, from(addr(client), 80), seenAs(addr(client))},
				flow{host, from(addr(client), 81), lab.Outcome{Action: plan.Reject}},
				flow{host, from(addr(client), 82), lab.Outcome{Action: plan.Drop}},
			)
		}
		all = append(all, flow{"pods-a", from(s.pod, 80), seenAs(s.node)})
	}
	return all
}

func (f flow) check(t *testing.T, l *lab.Lab) {
	if f.want.Action == plan.Drop {
		f.Timeout = lab.Silence(f.Protocol)
	}
	got, err := l.Host(f.host).Dial(f.Dial)
	if err != nil {
		t.Error(err)
		return
	}
	got.Peer, got.Err = netip.AddrPortFrom(got.Peer.Addr(), 0), nil
	if got != f.want {
		t.Errorf("%s → %s/%s: got %s, want %s", f.From, f.To, f.Protocol, got, f.want)
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func restore(t *testing.T, h *lab.Host, program, text string) {
	t.Helper()
	// An ordinary user's PATH may lack these.
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd := h.Command(t.Context(), program)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// A filter of the client's own machine refuses with an ICMP error, which finds the client still sending. It is told at once
// all the same, and not when TCP has tried again.
func TestRefusedByTheClientsOwnMachine(t *testing.T) {
	l := up(t, lab.Reference())
	node := l.Node()
	for program, to := range map[string]string{"iptables-restore": "203.0.113.7:80", "ip6tables-restore": "[2001:db8:77::7]:80"} {
		restore(t, node, program, "*filter\n-A OUTPUT -p tcp --dport 80 -j REJECT\nCOMMIT\n")
		for range 5 {
			o := dial(t, node, lab.Dial{To: netip.MustParseAddrPort(to), Protocol: model.TCP, Timeout: 5 * time.Second})
			if o.Action != plan.Reject {
				t.Errorf("%s: %s, want a refusal", to, o)
			}
		}
	}
	if n, err := node.Repeated(); err != nil || n != 0 {
		t.Errorf("%d packets were sent again, error %v", n, err)
	}
}
