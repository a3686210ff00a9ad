package app

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"sluice/internal/config"
	"sluice/internal/trace"
)

// nft has the program do what a text says, as somebody else would.
func (n *node) nft(text string) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("nft: %v\n%s", err, out)
	}
}

// traced is what trace --live finds, of the packet of answers.
func (n *node) traced(to string) (r trace.Result) {
	n.t.Helper()
	q, err := ParseQuestion("10.244.1.9", to, "", "")
	if err != nil {
		n.t.Fatal(err)
	}
	var out bytes.Buffer
	in := Input{Config: flags(n.t), Messages: &bytes.Buffer{}}
	if _, err := Trace(n.t.Context(), in, q, TraceOptions{Live: true, Format: JSON}, &out); err != nil {
		n.t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		n.t.Fatal(err)
	}
	return r
}

// Rules of others may yet drop what Sluice forwards, so trace is not certain of it, in any mode.
func TestTraceTellsOfRulesOfOthers(t *testing.T) {
	for _, mode := range []string{config.ModeNFTables, config.ModeIPTables} {
		t.Run(mode, func(t *testing.T) {
			n := newNodeOf(t, mode)
			n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
			n.start()
			n.eventually("rules are written", func() bool { return strings.Contains(n.said(), "rules written") })
			n.nft("table ip idle { chain c { type filter hook forward priority 0; }\nchain i { type filter hook input priority 0; policy drop; }\n}")
			if r := n.traced("10.96.0.10:53/UDP"); r.Verdict != trace.Forward || r.Uncertain || len(r.NotFollowed) > 0 {
				t.Errorf("beside what does nothing to it: %+v", r)
			}
			n.nft("table ip idle { chain c { udp dport 53 drop; }\n}")
			r := n.traced("10.96.0.10:53/UDP")
			if want := (trace.Chain{Table: "ip idle", Name: "c", Hook: "forward", Policy: "accept", Rules: 1}); !r.Uncertain || len(r.NotFollowed) != 1 || r.NotFollowed[0] != want {
				t.Errorf("beside a rule: %+v", r)
			}
			n.nft("delete table ip idle")
		})
	}
}

// What Docker does on a node of mode nftables.
func TestTraceTellsOfAPolicy(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.forwards("10.96.0.10:53/UDP", "10.244.2.5:53"))
	n.restore("*filter\n:FORWARD DROP\nCOMMIT\n")
	defer n.restore("*filter\n:FORWARD ACCEPT\nCOMMIT\n")
	if text := n.answers("10.96.0.10:53/UDP"); !strings.Contains(text, "not certain: see the notes") || !strings.Contains(text, "chain FORWARD (hook forward, policy drop, 0 rules)") {
		t.Error(text)
	}
}

// The table of kube-proxy's mode nftables is told of where it is all that there is.
func TestTraceTellsOfKubeProxysTable(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	n.nft("table ip kube-proxy { chain nat-prerouting { type nat hook prerouting priority dstnat; counter; }\n}")
	if text := n.answers("10.96.0.10:53/UDP"); !strings.Contains(text, "table ip kube-proxy, which is not followed here") || !strings.Contains(text, "not certain") {
		t.Error(text)
	}
}
