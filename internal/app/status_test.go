package app

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/instance"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/status"
)

func TestStatusText(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	count, open := uint64(1234), int64(56)
	v := statusView{now: now, Report: status.Report{
		Mode: "nftables", Node: "node-a", Since: now.Add(-75 * time.Hour), Healthy: true,
		Applied: &status.Applied{Last: now.Add(-90 * time.Second), LastSeconds: 0.0012344, Times: 7, Written: 120, Restored: 3},
		Ports: []status.Port{
			{Namespace: "default", Name: "web", Number: 80, Protocol: "TCP", Family: "IPv4", State: "done", Since: now.Add(-3 * time.Hour), Frontends: 2, Endpoints: 3, Connections: &count, Open: &open},
			{Namespace: "kube-system", Name: "kube-dns", Port: "dns", Number: 53, Protocol: "UDP", Family: "IPv6", State: "error", Since: now.Add(-5 * time.Minute), Error: "add element: no space left on device", Frontends: 1, Endpoints: 1},
			{Namespace: "shop", Name: "gone", Protocol: "TCP", Family: "IPv4", State: "pending", Since: now},
		},
		Problems: []string{"Service shop/late: spec.clusterIP: none is given, so the Service is not served"},
	}}
	const head = "mode nftables on node node-a, running for 3d, healthy\n" +
		"updates of the kernel: 7, the last 90s ago in 1.23ms; 120 objects written, 3 of them since others had changed them\n\n"
	const wrong = `
Problems
  Service kube-system/kube-dns dns:53/UDP IPv6: add element: no space left on device
  Service shop/late: spec.clusterIP: none is given, so the Service is not served
`
	for _, tt := range []struct {
		wide bool
		want string
	}{
		{false, head + `NAMESPACE     NAME       PORT         FAMILY   STATE     ENDPOINTS   CONNECTIONS   AGE
default       web        80/TCP       IPv4     done      3           1234          3h
kube-system   kube-dns   dns:53/UDP   IPv6     error     1           -             5m
shop          gone       -/TCP        IPv4     pending   0           -             0s
` + wrong},
		{true, head + `NAMESPACE     NAME       PORT         FAMILY   STATE     ENDPOINTS   CONNECTIONS   AGE   FRONTENDS   OPEN
default       web        80/TCP       IPv4     done      3           1234          3h    2           56
kube-system   kube-dns   dns:53/UDP   IPv6     error     1           -             5m    1           -
shop          gone       -/TCP        IPv4     pending   0           -             0s    0           -
` + wrong},
	} {
		var out bytes.Buffer
		v.wide = tt.wide
		if err := v.text(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Errorf("wide %t: %s", tt.wide, diff)
		}
	}
}

func TestStatusTextOfADaemonInTrouble(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for want, r := range map[string]status.Report{
		"mode (not chosen yet) on node (no name), running for 0s, NOT healthy: changes do not reach the kernel\nthe kernel has not been written yet\n": {Since: now},
		"mode iptables on node n, running for 2m, healthy\nupdates of the kernel: 2, the last 0s ago in 1s; 0 objects written; the last 2 failed\n": {
			Mode: "iptables", Node: "n", Since: now.Add(-2 * time.Minute), Healthy: true,
			Applied: &status.Applied{Last: now, LastSeconds: 1, Times: 2, Failures: 2},
		},
		"mode nftables on node n, running for 2m, NOT ready: it waits for the API server\n" +
			"API server https://192.0.2.1: not all objects are known yet: connection refused\nthe kernel has not been written yet\n": {
			Mode: "nftables", Node: "n", Since: now.Add(-2 * time.Minute), Healthy: true,
			API: &status.API{Server: "https://192.0.2.1", Error: "connection refused"},
		},
	} {
		var out bytes.Buffer
		if err := (statusView{Report: r, now: now}).text(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	}
}

// What waits for its first objects is not ready, and knows of no Node yet.
func TestReportBeforeTheObjectsAreRead(t *testing.T) {
	for _, synced := range []bool{false, true} {
		b := newBoard(func() *status.API { return &status.API{Synced: synced} }, nil)
		b.planned(plan.Build(plan.Config{NodeName: "node-a"}, plan.Host{}, model.NewSnapshot()), plan.Changes{})
		r := b.report(t.Context())
		if missed := len(r.Problems) > 0; r.Unread() == synced || missed != synced {
			t.Errorf("synced %t: unread %t, problems %q", synced, r.Unread(), r.Problems)
		}
	}
}

func TestStatusOfANamespaceWithoutServices(t *testing.T) {
	var out bytes.Buffer
	if err := (statusView{namespace: "shop"}).text(&out); err != nil || !strings.Contains(out.String(), "no Service is served in namespace shop\n") {
		t.Errorf("error %v, text:\n%s", err, &out)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m",
		2 * time.Hour: "2h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 1000 * 24 * time.Hour: "1000d",
	} {
		if got := age(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestStatusChoosesServices(t *testing.T) {
	ports := []status.Port{{Namespace: "a", Name: "web"}, {Namespace: "a", Name: "dns"}, {Namespace: "b", Name: "web"}}
	for _, tt := range []struct {
		namespace, service string
		want               int
		refusal            string
	}{
		{"", "", 3, ""},
		{"a", "", 2, ""},
		{"none", "", 0, ""}, // as a Service may come there
		{"", "web", 2, ""},
		{"b", "web", 1, ""},
		{"", "b/web", 1, ""},
		{"b", "dns", 0, "no Service dns is served in namespace b"},
		{"", "mail", 0, "no Service mail is served in any namespace"},
	} {
		got, err := StatusOptions{Namespace: tt.namespace, Service: tt.service}.choose(ports)
		if len(got) != tt.want || (err != nil) != (tt.refusal != "") || err != nil && err.Error() != tt.refusal {
			t.Errorf("-n %q %q: %d ports, error %v; want %d, %q", tt.namespace, tt.service, len(got), err, tt.want, tt.refusal)
		}
	}
}

func TestStatusOfARunningDaemon(t *testing.T) {
	n := newNode(t)
	if _, err := Status(StatusOptions{Format: Text}, io.Discard); !errors.Is(err, instance.ErrNotRunning) {
		t.Errorf("before it runs: %v", err)
	}
	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.5:53"), udp("empty", "10.96.0.11", 54, 0, ""), udp("late", "", 55, 0, ""))
	n.start()
	var out bytes.Buffer
	n.eventually("all is done", func() bool {
		out.Reset()
		outcome, err := Status(StatusOptions{Format: Text}, &out)
		return err == nil && outcome == Good && strings.Count(out.String(), " done ") == 2
	})
	for _, want := range []string{"mode iptables on node node-a", "healthy", "default     dns     53/UDP   IPv4     done    1 ", "Service default/late: spec.clusterIP: none is given"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &out)
		}
	}
	stuck, err := instance.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stuck.Close() }()
	r, err := askDaemon()
	if err != nil {
		t.Fatal(err)
	}
	dns := r.Ports[0]
	if r.Mode != "iptables" || r.Applied == nil || dns.Name != "dns" || dns.Number != 53 || dns.Frontends != 2 || dns.Endpoints != 1 || dns.Connections != nil {
		t.Errorf("the report is %+v", r)
	}
	n.put(udp("empty", "10.96.0.11", 54, 0, ""))
	n.eventually("what is gone is not shown", func() bool {
		r, err := askDaemon()
		return err == nil && len(r.Ports) == 1 && r.Ports[0].Name == "empty"
	})
	n.stop()
	if _, err := net.Dial("unix", "@sluice"); err == nil {
		t.Error("the socket outlives the daemon")
	}
}

func TestBoardBeforeAnythingIsThere(t *testing.T) {
	b := newBoard((&manifests{}).state, &relayOfDaemon{})
	b.read(map[any][]string{manifestTopic: {"no such file"}, machineTopic: nil})
	r := b.report(t.Context())
	if r.Healthy || len(r.Problems) != 1 || r.Ports == nil {
		t.Errorf("report %+v", r)
	}
	id := plan.PortID{Service: model.Name{Namespace: "a", Name: "b"}}
	b.planned(&plan.Plan{Node: plan.Node{Name: "n"}}, plan.Changes{Ports: []plan.Change{{ID: id, New: &plan.Port{ID: id}}}})
	if r = b.report(t.Context()); r.Node != "n" {
		t.Errorf("report %+v", r)
	}
}
