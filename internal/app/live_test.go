package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"sluice/internal/backend/iptables"
	"sluice/internal/config"
	"sluice/internal/kernel/conntrack"
	"sluice/internal/kernel/instance"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/link"
	"sluice/internal/model"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// node is a machine with a daemon, in the tests' own namespace.
type node struct {
	t   *testing.T
	dir string
	in  Input
	// reload is the daemon's Reload.
	reload func(context.Context, config.Config, func(config.Config, []string, error)) error

	mu  sync.Mutex // guards log
	log bytes.Buffer

	stop func() // ends the daemon and waits for it
}

// newNode has an address, 192.168.10.11, and nothing in its tables. Its daemon is of mode iptables.
func newNode(t *testing.T) *node {
	t.Helper()
	return newNodeOf(t, config.ModeIPTables)
}

// use has the mode iptables use a variant, by the sign that kubelet leaves of its own choice, until the test ends.
func (n *node) use(v iptexec.Variant) {
	n.t.Helper()
	tools, err := iptexec.Find(n.t.Context(), v)
	if err != nil {
		n.t.Fatal(err)
	}
	restore := func(ctx context.Context, text string) {
		if err := tools.Restore(ctx, iptexec.IPv4, []byte("*mangle\n"+text+"\nCOMMIT\n"), iptexec.RestoreOptions{}); err != nil {
			n.t.Error(err)
		}
	}
	restore(n.t.Context(), ":KUBE-IPTABLES-HINT - [0:0]")
	n.t.Cleanup(func() { restore(context.Background(), "-X KUBE-IPTABLES-HINT") })
}

func newNodeOf(t *testing.T, mode string) *node {
	t.Helper()
	nstest.Require(t)
	links, err := link.Here()
	if err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	if err := links.AddAddress("lo", netip.MustParsePrefix("192.168.10.11/32")); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: t.TempDir(), stop: func() {}}
	n.in = Input{Manifests: []string{n.dir}, Messages: &bytes.Buffer{}}
	n.configure(mode)
	t.Cleanup(func() {
		n.stop()
		if err := Cleanup(context.Background(), CleanupOptions{}, &bytes.Buffer{}); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(n.said())
		}
	})
	return n
}

// configure is for the next start.
func (n *node) configure(mode string) {
	n.t.Helper()
	n.in.Config = flags(n.t, "--mode="+mode, "--node=node-a", "--cluster-cidr=10.244.0.0/16", "--iptables-sync-period=1s", "--iptables-min-sync-period=10ms")
}

// flags are a configuration as it is written on a command line.
func flags(t *testing.T, args ...string) config.Config {
	t.Helper()
	set := pflag.NewFlagSet("app", pflag.ContinueOnError)
	f := config.NewFlags(set)
	f.Mode("")
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, _, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (n *node) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.Write(b)
}

func (n *node) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// start starts the daemon.
func (n *node) start() {
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Daemon{Input: n.in, Log: textLog(n), Reload: n.reload}.Run(ctx)
	}()
	n.stop = func() {
		n.stop = func() {}
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("the daemon ended with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		if err := goleak.Find(before); err != nil {
			n.t.Error(err)
		}
	}
}

// put writes the manifests: a Node, and these Services with the endpoint each has ("" for none).
func (n *node) put(services ...string) {
	n.t.Helper()
	text := "apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\nstatus: {addresses: [{type: InternalIP, address: 192.168.10.11}]}\n"
	for _, s := range services {
		text += "---\n" + s
	}
	temporary := filepath.Join(n.t.TempDir(), "objects.yaml")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(n.dir, "objects.yaml")); err != nil {
		n.t.Fatal(err)
	}
}

// udp is a Service at a cluster IP and a node port, with an endpoint on another node.
func udp(name, clusterIP string, port, nodePort int, endpoint string) string {
	kind, node := "ClusterIP", ""
	if nodePort != 0 {
		kind, node = "NodePort", fmt.Sprintf(", nodePort: %d", nodePort)
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: %s, clusterIP: %s, ports: [{protocol: UDP, port: %d%s}]}\n", name, kind, clusterIP, port, node)
	if endpoint == "" {
		return text
	}
	at := netip.MustParseAddrPort(endpoint)
	return text + fmt.Sprintf("---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-1, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\nports: [{protocol: UDP, port: %d}]\nendpoints: [{addresses: [%s], nodeName: node-b, conditions: {ready: true}}]\n", name, name, at.Port(), at.Addr())
}

// eventually waits until the condition holds.
func (n *node) eventually(what string, holds func() bool) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("still not so: %s", what)
		}
	}
}

func (n *node) rules() string {
	n.t.Helper()
	text, err := n.tables().Save(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}

func (n *node) has(text string) func() bool {
	return func() bool { return strings.Contains(n.rules(), text) }
}

// asPlanned reports whether diff finds nothing.
func (n *node) asPlanned() bool {
	n.t.Helper()
	var out bytes.Buffer
	outcome, err := Diff(n.t.Context(), n.in, DiffOptions{}, &out)
	if err != nil {
		n.t.Fatal(err)
	}
	return outcome == Good
}

// restore gives text to iptables-restore, as somebody else would.
func (n *node) restore(text string) {
	n.t.Helper()
	if err := n.tables().Restore(context.Background(), []byte(text)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) tables() iptables.Tables {
	n.t.Helper()
	deps, _, err := iptables.System(context.Background(), "")
	if err != nil {
		n.t.Fatal(err)
	}
	return deps.Tables[model.IPv4]
}

func TestRunKeepsTheKernelAsTheManifestsSay(t *testing.T) {
	n := newNode(t)
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", func() bool { return strings.Contains(n.said(), "rules written") }) // of both families
	if !n.has("--to-destination 10.244.2.5:53")() || !n.asPlanned() {
		t.Error("diff finds something right after the rules were written")
	}

	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.6:53"))
	n.eventually("a change is followed", n.has("--to-destination 10.244.2.6:53"))

	n.restore("*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n")
	n.eventually("rules that somebody removed are back", n.asPlanned)
	n.eventually("what was restored is told", func() bool { return strings.Contains(n.said(), "nat KUBE-SERVICES") })

	var out bytes.Buffer
	q, err := ParseQuestion("10.244.1.9", "10.96.0.10:53/UDP", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Trace(t.Context(), Input{Config: flags(t)}, q, TraceOptions{Live: true, Format: Text}, &out); err != nil || !strings.Contains(out.String(), "10.244.2.6:53  100 %") {
		t.Errorf("trace --live: %v\n%s", err, &out)
	}

	n.stop()
	if !n.has("--to-destination 10.244.2.6:53")() {
		t.Error("the rules went with the daemon")
	}
}

func TestRestartWithNothingChangedWritesNothing(t *testing.T) {
	n := newNode(t)
	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.has("--to-destination 10.244.2.5:53"))
	n.eventually("the start is over", func() bool { return strings.Contains(n.said(), "rules written") })
	n.stop()
	before := len(n.said())
	n.start()
	n.eventually("the kernel is looked at", func() bool { return strings.Contains(n.said()[before:], "rules written") })
	n.stop()
	if log := n.said()[before:]; !strings.Contains(log, "changed=0") || strings.Contains(strings.ReplaceAll(log, "changed=0", ""), "changed=") {
		t.Error("a restart wrote something")
	}
}

func TestASecondInstanceIsRefused(t *testing.T) {
	n := newNode(t)
	n.put()
	n.start()
	n.eventually("it runs", n.has("KUBE-SERVICES"))
	if err := (Daemon{Input: n.in, Log: textLog(io.Discard)}).Run(t.Context()); !errors.Is(err, instance.ErrRunning) {
		t.Errorf("error %v, want that one is running", err)
	}
	if err := Cleanup(t.Context(), CleanupOptions{}, &bytes.Buffer{}); !errors.Is(err, instance.ErrRunning) {
		t.Errorf("clean-up: error %v, want that one is running", err)
	}
}

func TestRunRefusesWhatWouldTakeRulesAway(t *testing.T) {
	n := newNode(t)
	for name, paths := range map[string][]string{"none": nil, "not there": {n.dir + "/typo"}, "standard input": {"-"}} {
		n.in.Manifests = paths
		if err := (Daemon{Input: n.in, Log: textLog(io.Discard)}).Run(t.Context()); !errors.Is(err, ErrInput) {
			t.Errorf("manifests: %s: error %v, want wrong input", name, err)
		}
	}
}

func TestCleanupLeavesOthersAlone(t *testing.T) {
	n := newNode(t)
	const foreign = "-A FORWARD -s 198.51.100.0/24 -j DROP"
	n.restore("*filter\n" + foreign + "\nCOMMIT\n")
	t.Cleanup(func() { n.restore("*filter\n" + strings.Replace(foreign, "-A", "-D", 1) + "\nCOMMIT\n") })
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.has("--to-destination 10.244.2.5:53"))
	n.stop()
	var out bytes.Buffer
	if err := Cleanup(t.Context(), CleanupOptions{}, &out); err != nil {
		t.Fatal(err)
	}
	if rules := n.rules(); strings.Contains(rules, "KUBE-SERVICES") || !strings.Contains(rules, foreign) {
		t.Errorf("after clean-up:\n%s", rules)
	}
	if !strings.Contains(out.String(), "chains of a Service proxy") {
		t.Errorf("it says %q, want what was removed", &out)
	}
}

// flows is the UDP entries of connection tracking, by the client's port.
func (n *node) flows() (clients []int) {
	n.t.Helper()
	all, err := tracking(n.t).UDP()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range all {
		clients = append(clients, int(f.Source.Port()))
	}
	slices.Sort(clients)
	return clients
}

func tracking(t *testing.T) *conntrack.Conn {
	t.Helper()
	conn, err := conntrack.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// open makes an entry: from, to, and who answers whom.
func (n *node) open(from, to, replyFrom, replyTo string) {
	n.t.Helper()
	f := conntrack.Flow{
		Protocol: 17, Source: netip.MustParseAddrPort(from), Dest: netip.MustParseAddrPort(to),
		ReplyFrom: netip.MustParseAddrPort(replyFrom), ReplyTo: netip.MustParseAddrPort(replyTo), Unreplied: true,
	}
	if err := tracking(n.t).Create(f, 600); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		all, err := tracking(n.t).UDP()
		if err == nil {
			_, err = tracking(n.t).Delete(all)
		}
		if err != nil {
			n.t.Error(err)
		}
	})
}

const (
	statsd = "10.244.2.94:8125"
	dns    = "10.244.1.5:53"
)

func (n *node) wantFlows(what string, want ...int) {
	n.t.Helper()
	n.eventually(what, func() bool { return slices.Equal(n.flows(), want) })
	if diff := cmp.Diff(want, n.flows()); diff != "" {
		n.t.Error(diff)
	}
}

// Clients that were sending before the first endpoint existed reach it when it comes.
func TestUDPFirstEndpointArrives(t *testing.T) {
	n := newNode(t)
	n.put(udp("statsd", "10.96.30.14", 8125, 30160, ""))
	n.start()
	n.eventually("rules are written", n.has("KUBE-SERVICES"))
	n.open("10.244.1.50:40011", "10.96.30.14:8125", "10.96.30.14:8125", "10.244.1.50:40011")
	n.open("203.0.113.77:40012", "192.168.10.11:30160", "192.168.10.11:30160", "203.0.113.77:40012")
	n.open("203.0.113.77:40013", "192.168.10.11:30161", "192.168.10.11:30161", "203.0.113.77:40013")
	n.put(udp("statsd", "10.96.30.14", 8125, 30160, statsd))
	n.wantFlows("what no rule translated is removed", 40013)
}

// openDeleted makes the entries of a Service that is about to go, and some that are not its own.
func (n *node) openDeleted() {
	n.open("10.244.1.50:40001", "10.96.30.14:8125", statsd, "10.244.1.50:40001")
	n.open("203.0.113.77:40002", "192.168.10.11:30160", statsd, "192.168.10.11:61002")
	n.open("10.244.1.50:40004", "10.96.0.10:53", dns, "10.244.1.50:40004")
	n.open("10.244.1.51:40005", statsd, statsd, "10.244.1.51:40005")
}

func TestUDPServiceDeleted(t *testing.T) {
	n := newNode(t)
	kept := udp("kube-dns", "10.96.0.10", 53, 0, dns)
	n.put(kept, udp("statsd", "10.96.30.14", 8125, 30160, statsd))
	n.start()
	n.eventually("rules are written", n.has("--to-destination "+statsd))
	n.openDeleted()
	n.put(kept)
	n.wantFlows("the Service's entries are removed", 40004, 40005)
}

func TestUDPServiceDeletedWhileNobodyRan(t *testing.T) {
	n := newNode(t)
	kept := udp("kube-dns", "10.96.0.10", 53, 0, dns)
	n.put(kept, udp("statsd", "10.96.30.14", 8125, 30160, statsd))
	n.start()
	n.eventually("rules are written", n.has("--to-destination "+statsd))
	n.stop()
	n.openDeleted()
	n.put(kept)
	n.start()
	n.wantFlows("the Service's entries are removed", 40004, 40005)
}

func TestUDPEndpointLeavesAndNoneIsLeft(t *testing.T) {
	n := newNode(t)
	kept := udp("kube-dns", "10.96.0.10", 53, 0, dns)
	n.put(kept, udp("statsd", "10.96.30.14", 8125, 30160, statsd))
	n.start()
	n.eventually("rules are written", n.has("--to-destination "+statsd))
	n.openDeleted()
	n.put(kept, udp("statsd", "10.96.30.14", 8125, 30160, ""))
	n.wantFlows("entries to the endpoint are removed, those of node ports too", 40004, 40005)
}

// textLog tells all to w.
func textLog(w io.Writer) Log {
	return NewLog(debugFrom, func(level slog.Leveler) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
	})
}
