package metrics

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
	"sluice/internal/relay/udp"
)

// relayed are numbers of a proxy that has two Service ports, of which one has series of its own.
func relayed() *relay.Stats {
	web := count.Counts{Accepted: 10, Open: 2, DialFailures: 3, In: 100, Out: 200, Ended: 4, Duration: 6 * time.Second}
	web.Refused[count.Limit], web.Refused[count.NotRedirected] = 5, 1
	s := &relay.Stats{
		TCP: web, UDP: count.Counts{Open: 7}, Ports: map[plan.PortID]count.Counts{port("a").ID: web, port("unnamed").ID: web},
		Datagrams: udp.Stats{In: 8, Out: 9}, Connections: 1000, Sessions: 500,
	}
	s.Datagrams.Dropped[udp.Busy], s.Datagrams.Ended[udp.Idle] = 11, 12
	return s
}

func TestValuesOfTheProxy(t *testing.T) {
	m := used("userspace")
	wantLines(t, m,
		`sluice_relay_connections_total{protocol="TCP"} 10`,
		`sluice_relay_open_connections{protocol="TCP"} 2`,
		`sluice_relay_open_connections{protocol="UDP"} 7`,
		`sluice_relay_connections_limit{protocol="TCP"} 1000`,
		`sluice_relay_connections_limit{protocol="UDP"} 500`,
		`sluice_relay_refused_connections_total{protocol="TCP",reason="limit"} 5`,
		`sluice_relay_refused_connections_total{protocol="TCP",reason="loop"} 0`,
		`sluice_relay_dial_failures_total{protocol="TCP"} 3`,
		`sluice_relay_bytes_total{direction="out",protocol="TCP"} 200`,
		`sluice_relay_connection_duration_seconds_sum{protocol="TCP"} 6`,
		`sluice_relay_connection_duration_seconds_count{protocol="TCP"} 4`,
		`sluice_relay_datagrams_total{direction="in"} 8`,
		`sluice_relay_dropped_datagrams_total{reason="busy"} 11`,
		`sluice_relay_ended_sessions_total{reason="idle"} 12`,
		`sluice_service_open_connections{ip_family="IPv4",name="a",namespace="default",port="http",protocol="TCP"} 2`,
		`sluice_service_refused_connections_total{ip_family="IPv4",name="a",namespace="default",port="http",protocol="TCP"} 5`,
		`sluice_service_dial_failures_total{ip_family="IPv4",name="a",namespace="default",port="http",protocol="TCP"} 3`,
		`sluice_service_bytes_total{direction="in",ip_family="IPv4",name="a",namespace="default",port="http",protocol="TCP"} 100`)
	if strings.Contains(text(m), "unnamed") {
		t.Error("a Service port without series of its own has one")
	}
}

// A family that is not served at its loopback address has no numbers, and not 0.
func TestValuesOfLocalhostNodePorts(t *testing.T) {
	m := used("nftables")
	wantLines(t, m,
		`kubeproxy_nftables_localhost_nodeport_listeners{ip_family="IPv6"} 3`,
		`kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total{ip_family="IPv6"} 4`)
	if strings.Contains(text(m), `listeners{ip_family="IPv4"}`) {
		t.Error("a family that is not served has listeners")
	}
}
