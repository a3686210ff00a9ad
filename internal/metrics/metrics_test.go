package metrics

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
	"sluice/internal/relay"
	"sluice/internal/relay/localhost"
	"sluice/internal/status"
)

var start = time.Unix(1_000_000, 0)

func port(name string, edit ...func(*plan.Port)) *plan.Port {
	p := &plan.Port{ID: plan.PortID{Service: model.Name{Namespace: "default", Name: name}, Port: "http", Protocol: model.TCP}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func hasEndpoints(p *plan.Port) {
	p.Frontends = []plan.Frontend{{Kind: plan.ClusterIP}}
	p.Internal[plan.ClientPod] = plan.Route{Action: plan.Forward, List: plan.ListCluster}
	p.Cluster = []plan.Endpoint{{}, {}}
}

func dropsOutside(p *plan.Port) { p.External[plan.ClientOutside].Action = plan.Drop }

// used are metrics of a mode after each thing happened once.
func used(mode string) *Metrics {
	m := New(mode, Info{Version: "v1.2.3", Features: map[string]bool{"A": true}, Stage: func(string) string { return "BETA" }})
	s := Source{
		Health:  func() (h reconcile.Health) { h.Family[0].Asked, h.Family[1].Asked = start, start; return h },
		Pending: func() (services, slices int) { return 3, 4 },
		States:  func() map[reconcile.State]int { return map[reconcile.State]int{reconcile.Done: 5} },
		API: func() *status.API {
			return &status.API{Connected: true, Kinds: []status.Kind{{Kind: "Service", Synced: true, Connected: true, Since: start, Objects: 6}}}
		},
	}
	switch mode {
	case "iptables":
		s.Rules = func() []backend.TableRules {
			return []backend.TableRules{{Family: model.IPv6, Table: "nat", Held: 20, Written: 9}}
		}
		s.Packets = func(context.Context) (backend.Packets, error) {
			return backend.Packets{Invalid: new(uint64(11)), Localhost: new(uint64(0))}, nil
		}
	case "nftables":
		s.Localhost = func() [2]*localhost.Numbers { return [2]*localhost.Numbers{model.IPv6: {Listeners: 3, Failures: 4}} }
	case "userspace":
		s.Relay = func() *relay.Stats { return relayed() }
	}
	if mode != "iptables" {
		s.Connections = func(context.Context) (map[plan.PortID]uint64, error) {
			return map[plan.PortID]uint64{port("a").ID: 7}, nil
		}
	}
	m.Ask(s)
	m.Answered("healthz", 200)
	m.Answered("livez", 503)
	m.Request("GET", "200", "api:6443", time.Second)
	m.Absorbed(1, 2)
	m.Planned(plan.Changes{Ports: []plan.Change{{New: port("a", dropsOutside, hasEndpoints)}}})
	m.Applied(reconcile.Applied{Start: start, End: start.Add(time.Second), Written: 8, Restored: 2, Refused: 1, Phases: backend.Phases{backend.Write: time.Second}})
	m.Swept(time.Second, [2]int{1, 0}, nil)
	return m
}

type family struct {
	kind   string
	labels []string // sorted
}

func families(t *testing.T, m *Metrics) map[string]family {
	t.Helper()
	all, err := m.gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]family{}
	for _, f := range all {
		one := family{kind: strings.ToLower(f.GetType().String())}
		for _, l := range f.Metric[0].Label {
			one.labels = append(one.labels, l.GetName())
		}
		slices.Sort(one.labels)
		found[f.GetName()] = one
	}
	return found
}

func text(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func wantLines(t *testing.T, m *Metrics, lines ...string) {
	t.Helper()
	all := text(m)
	for _, l := range lines {
		if !strings.Contains(all, "\n"+l+"\n") {
			t.Errorf("there is no line %q", l)
		}
	}
}

func TestValues(t *testing.T) {
	m := used("nftables")
	m.Applied(reconcile.Applied{
		Start: start, End: start.Add(2 * time.Second), Failed: [2]bool{false, true}, Full: true,
		Programmed: []reconcile.Programmed{{Family: model.IPv4, Took: 300 * time.Millisecond}},
	})
	m.Pinged()
	wantLines(t, m,
		`kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 2`,
		`kubeproxy_sync_full_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 2`,
		`kubeproxy_sync_partial_proxy_rules_duration_seconds_sum{ip_family="IPv6"} 1`,
		`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.000002e+06`,
		`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 1.000001e+06`,
		`kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv6"} 1`,
		`kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"} 0`,
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.25"} 0`,
		`kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.5"} 1`,
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 1`,
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 0`,
		`kubeproxy_sync_proxy_rules_endpoint_changes_total 2`,
		`kubeproxy_sync_proxy_rules_endpoint_changes_pending 4`,
		`kubeproxy_proxy_livez_total{code="503"} 1`,
		`kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"} 1`,
		`sluice_service_connections_total{ip_family="IPv4",name="a",namespace="default",port="http",protocol="TCP"} 7`,
		`sluice_service_ports{ip_family="IPv4"} 1`,
		`sluice_service_endpoints{ip_family="IPv4"} 2`,
		`sluice_api_kind_synced{kind="Service"} 1`,
		`sluice_api_kind_connected{kind="Service"} 1`,
		`sluice_api_kind_connected_change_timestamp_seconds{kind="Service"} 1e+06`,
		`sluice_api_kind_objects{kind="Service"} 6`,
		`sluice_restored_objects_total 2`,
		`sluice_repairs_total 1`,
		`sluice_apply_phase_duration_seconds_sum{phase="write"} 1`,
		`sluice_apply_phase_duration_seconds_count{phase="read"} 0`,
		`kubernetes_feature_enabled{name="A",stage="BETA"} 1`,
	)
	m.Planned(plan.Changes{Ports: []plan.Change{{Old: port("a", dropsOutside, hasEndpoints)}}})
	wantLines(t, m,
		`sluice_service_endpoints{ip_family="IPv4"} 0`,
		`kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 0`,
		`sluice_service_ports{ip_family="IPv4"} 0`)
	w := httptest.NewRecorder()
	m.SLIs().ServeHTTP(w, httptest.NewRequest("GET", "/metrics/slis", nil))
	if want := `kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("SLIs %s, want %s", w.Body, want)
	}
}

func TestValuesOfIPTables(t *testing.T) {
	wantLines(t, used("iptables"),
		`kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv6",table="nat"} 20`,
		`kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv6",table="nat"} 9`,
		`kubeproxy_iptables_ct_state_invalid_dropped_packets_total 11`,
		`kubeproxy_iptables_localhost_nodeports_accepted_packets_total 0`)
}

func TestUnknownIsAbsent(t *testing.T) {
	m := New("iptables", Info{})
	for range 2 {
		all := text(m)
		for _, absent := range []string{
			"last_timestamp", "last_queued", "_pending", "connections_total", "sluice_api", "nftables", "feature", "rules_iptables_total",
			"rules_iptables_last", "packets", "relay", "listener",
		} {
			if strings.Contains(all, absent) {
				t.Errorf("%s is told, and nothing is known of it", absent)
			}
		}
		m.Ask(Source{ // which knows nothing yet either
			API: func() *status.API { return nil }, Rules: func() []backend.TableRules { return nil },
			Packets: func(context.Context) (p backend.Packets, err error) { return p, nil },
			Relay:   func() *relay.Stats { return nil }, Localhost: func() (n [2]*localhost.Numbers) { return n },
		})
	}
}

// What is read of the kernel takes a small part of the time, whatever a reading takes.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			took, rest time.Duration
			err        error
		}{
			{time.Millisecond, 5 * time.Second, nil},
			{200 * time.Millisecond, 20 * time.Second, nil},
			{2 * time.Second, time.Minute, nil},
			{2 * time.Second, 5 * time.Second, errors.New("no time")},
		} {
			var p pace
			start, times := time.Now(), 0
			for range 2 {
				p.read(time.Now(), func() error { times++; time.Sleep(tt.took); return tt.err })
			}
			if got := p.next.Sub(start) - tt.took; got != tt.rest || times != 1 {
				t.Errorf("%+v: read %d times, and nothing for %v", tt, times, got)
			}
		}
	})
}

// An error leaves what rules had counted.
func TestPacketsAreKept(t *testing.T) {
	err := error(nil)
	m := New("iptables", Info{})
	m.Ask(Source{Packets: func(context.Context) (backend.Packets, error) {
		return backend.Packets{Invalid: new(uint64(3))}, err
	}})
	const line = "kubeproxy_iptables_ct_state_invalid_dropped_packets_total 3"
	wantLines(t, m, line)
	err, m.asked.packets.pace = errors.New("busy"), pace{}
	wantLines(t, m, line)
	if strings.Contains(text(m), "localhost") {
		t.Error("what no rule counts is told")
	}
}

func TestModeChangesLive(t *testing.T) {
	m := used("iptables")
	m.SetMode("nftables")
	all := text(m)
	if strings.Contains(all, "iptables_restore_failures") || !strings.Contains(all, "nftables_sync_failures") {
		t.Error("the metrics of the former mode are still told, or those of the present one are not")
	}
}

// No counter falls, whoever comes and goes, and there are no more than maxNamed series.
func TestConnectionsAreBoundedAndOnlyGrow(t *testing.T) {
	counts := map[plan.PortID]uint64{}
	for i := range 2 * maxNamed {
		counts[numbered(i)] = uint64(i)
	}
	var c connections
	c.update(counts)
	if len(c.named) != maxNamed || !c.named[numbered(2*maxNamed-1)] || c.named[numbered(0)] {
		t.Fatalf("%d are named, want the %d busiest", len(c.named), maxNamed)
	}
	next := map[plan.PortID]uint64{}
	for id, n := range counts {
		next[id] = n + 10
	}
	delete(next, numbered(2*maxNamed-1)) // a named one
	delete(next, numbered(0))            // another
	next[plan.PortID{Port: "fresh"}] = 5
	before := c.other
	c.update(next)
	if want := before + 10*(maxNamed-1); c.other != want {
		t.Errorf("other is %d, want %d", c.other, want)
	}
	if !c.named[plan.PortID{Port: "fresh"}] || len(c.named) != maxNamed {
		t.Error("the free series is not the newcomer's")
	}
}

func numbered(i int) plan.PortID {
	return plan.PortID{Service: model.Name{Namespace: "n", Name: strings.Repeat("x", i%7)}, Port: string(rune('a' + i))}
}

// However many scrapes there are, the backend is asked now and then, and an error leaves what was known.
func TestCountsAreKept(t *testing.T) {
	asked := 0
	m := New("nftables", Info{})
	m.Ask(Source{Connections: func(context.Context) (map[plan.PortID]uint64, error) {
		if asked++; asked > 1 {
			return nil, errors.New("busy")
		}
		return map[plan.PortID]uint64{port("a").ID: 7}, nil
	}})
	for range 10 {
		text(m)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	m.asked.connections.pace = pace{}
	if !strings.Contains(text(m), `name="a",namespace="default"`) || asked != 2 {
		t.Errorf("after an error the former counts are gone, asked %d times", asked)
	}
}

// BenchmarkApplied is what an Apply of one endpoint costs here.
func BenchmarkApplied(b *testing.B) {
	m := used("nftables")
	a := reconcile.Applied{Start: start, End: start.Add(time.Millisecond), Written: 1, Phases: backend.Phases{1, 1, 1}, Programmed: []reconcile.Programmed{{Took: time.Millisecond}}}
	p := port("a")
	changes := plan.Changes{Ports: []plan.Change{{Old: p, New: p}}}
	b.ReportAllocs()
	for b.Loop() {
		m.Absorbed(0, 1)
		m.Planned(changes)
		m.Applied(a)
	}
}
