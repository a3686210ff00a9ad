package app

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"sluice/internal/backend/nftables"
	"sluice/internal/config"
)

// answers has trace --live say where a connection goes. No mode is given: the rules that are there are walked.
func (n *node) answers(to string) string {
	n.t.Helper()
	q, err := ParseQuestion("10.244.1.9", to, "", "")
	if err != nil {
		n.t.Fatal(err)
	}
	in := Input{Config: flags(n.t, "--cluster-cidr=10.244.0.0/16"), Messages: &bytes.Buffer{}}
	var out bytes.Buffer
	if _, err := Trace(n.t.Context(), in, q, TraceOptions{Live: true, Format: Text}, &out); err != nil {
		n.t.Fatal(err)
	}
	return out.String()
}

func (n *node) forwards(to, endpoint string) func() bool {
	return func() bool { return n.hasTable("sluice") && strings.Contains(n.answers(to), endpoint+"  100 %") }
}

func TestRunInModeNFTables(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.5:53"))
	if n.asPlanned() {
		t.Error("diff finds nothing before rules are written")
	}
	n.start()
	n.eventually("rules are written", n.forwards("10.96.0.10:53/UDP", "10.244.2.5:53"))
	if !n.asPlanned() {
		t.Error("diff finds something right after the rules were written")
	}
	if text := n.answers("192.168.10.11:30053/UDP"); !strings.Contains(text, "10.244.2.5:53  100 %  this node") || strings.Contains(text, "not certain") {
		t.Errorf("a node port:\n%s", text)
	}

	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.6:53"))
	n.eventually("a change is followed", n.forwards("10.96.0.10:53/UDP", "10.244.2.6:53"))

	err := withNFTables(nftables.Deps{}, func(b *nftables.Backend) error { return b.Cleanup(context.Background()) })
	if err != nil {
		t.Fatal(err)
	}
	n.eventually("a table that somebody removed is back", n.forwards("10.96.0.10:53/UDP", "10.244.2.6:53"))
	n.eventually("what was restored is told", func() bool { return strings.Contains(n.said(), "table inet sluice") })
	r, err := askDaemon()
	if err != nil {
		t.Fatal(err)
	}
	if r.Mode != "nftables" || r.Applied.Restored == 0 || len(r.Ports) != 1 || r.Ports[0].Connections == nil {
		t.Errorf("status %+v", r)
	}
	n.stop()
	if !n.hasTable("sluice") {
		t.Error("the rules went with the daemon")
	}
}

func TestDiffInModeNFTables(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.forwards("10.96.0.10:53/UDP", "10.244.2.5:53"))
	n.stop()
	n.put(udp("mail", "10.96.0.11", 25, 0, "10.244.2.5:53"))
	var out bytes.Buffer
	outcome, err := Diff(t.Context(), n.in, DiffOptions{}, &out)
	if err != nil || outcome != BadNews {
		t.Errorf("outcome %d, error %v", outcome, err)
	}
	for _, want := range []string{
		`+element inet sluice cluster-ips4 { 10.96.0.11 comment "default/mail" }`,
		`-element inet sluice cluster-ips4 { 10.96.0.10 comment "default/dns" }`,
		`-element inet sluice services4 { 10.96.0.10 . udp . 53 comment "default/dns" : `,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &out)
		}
	}
}

// Without --mode, run takes the best that the kernel can do, and says why.
func TestRunChoosesTheMode(t *testing.T) {
	n := newNode(t)
	n.in.Config = flags(t, "--node=node-a", "--iptables-masquerade-bit=3")
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.forwards("10.96.0.10:53/UDP", "10.244.2.5:53"))
	n.stop()
	first, _, _ := strings.Cut(n.said(), "\n")
	if !strings.Contains(first, "mode=nftables") || !strings.Contains(first, `because="this kernel can do it"`) {
		t.Errorf("it begins with %s", first)
	}
	if warned := n.in.Messages.(*bytes.Buffer).String(); !strings.Contains(warned, "--iptables-masquerade-bit has no effect") {
		t.Errorf("it warns %q", warned)
	}
	if mode := ChooseMode(t.Context()); mode != config.ModeNFTables {
		t.Errorf("ChooseMode says %s", mode)
	}
}

// cleanup knows every mode, and names what it removed.
func TestCleanupOfEveryMode(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.forwards("10.96.0.10:53/UDP", "10.244.2.5:53"))
	n.stop()
	n.restore("*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n")
	for _, want := range []string{"removed: table inet sluice\nremoved: ", "nothing to remove\n"} {
		var out bytes.Buffer
		if err := Cleanup(t.Context(), CleanupOptions{}, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("it says %q, want %q", &out, want)
		}
	}
	if n.hasTable("sluice") || n.has("KUBE-")() {
		t.Error("something is left")
	}
}
