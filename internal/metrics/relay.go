package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
	"sluice/internal/relay/localhost"
	"sluice/internal/relay/udp"
)

const (
	labelProtocol  = "protocol"
	labelReason    = "reason"
	labelDirection = "direction"
)

var (
	descRelayed  = desc("sluice_relay_connections_total", "Connections and UDP sessions of clients that the proxy was asked for.", labelProtocol)
	descOpen     = desc("sluice_relay_open_connections", "Connections and UDP sessions that are open.", labelProtocol)
	descLimit    = desc("sluice_relay_connections_limit", "How many may be open.", labelProtocol)
	descRefused  = desc("sluice_relay_refused_connections_total", "Connections and UDP sessions that were refused.", labelProtocol, labelReason)
	descDials    = desc("sluice_relay_dial_failures_total", "Endpoints that could not be reached, each time that one was tried.", labelProtocol)
	descBytes    = desc("sluice_relay_bytes_total", "Bytes from clients to endpoints (in) and back (out).", labelProtocol, labelDirection)
	descDuration = desc("sluice_relay_connection_duration_seconds", "How long connections and UDP sessions that have ended were open.", labelProtocol)

	descDatagrams = desc("sluice_relay_datagrams_total", "Datagrams to endpoints (in) and to clients (out).", labelDirection)
	descDropped   = desc("sluice_relay_dropped_datagrams_total", "Datagrams that were not passed on.", labelReason)
	descEnded     = desc("sluice_relay_ended_sessions_total", "UDP sessions that have ended.", labelReason)

	descPortOpen    = descOfPort("sluice_service_open_connections", "Connections and UDP sessions of a Service port that the proxy has open.")
	descPortRefused = descOfPort("sluice_service_refused_connections_total", "Those of clients that the proxy refused.")
	descPortDials   = descOfPort("sluice_service_dial_failures_total", "Endpoints of a Service port that could not be reached, each time that one was tried.")
	descPortBytes   = descOfPort("sluice_service_bytes_total", "Bytes from clients to endpoints (in) and back (out) that the proxy moved.", labelDirection)

	descListeners = desc(kubeProxy("nftables_localhost_nodeport_listeners"), "Node ports that are listened at on loopback addresses.", labelFamily)
	descUnbound   = desc(kubeProxy("nftables_localhost_nodeport_listener_creation_failures_total"), "Times that one could not be listened at.", labelFamily)
)

func relayDescs() []*prometheus.Desc {
	return []*prometheus.Desc{
		descRelayed, descOpen, descLimit, descRefused, descDials, descBytes, descDuration, descDatagrams, descDropped, descEnded,
		descPortOpen, descPortRefused, descPortDials, descPortBytes, descListeners, descUnbound,
	}
}

// descOfPort is a metric with a series for each Service port, and other labels.
func descOfPort(name, help string, more ...string) *prometheus.Desc {
	return desc(name, help, append(more, "namespace", "name", "port", labelProtocol, labelFamily)...)
}

func portLabels(id plan.PortID, more ...string) []string {
	return append(more, id.Service.Namespace, id.Service.Name, id.Port, id.Protocol.String(), id.Family.String())
}

// series takes metrics of one scrape.
type series chan<- prometheus.Metric

func (s series) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s series) counter(d *prometheus.Desc, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// collectRelay tells what the proxy has done, and of each Service port that is named.
func collectRelay(s series, stats *relay.Stats, named map[plan.PortID]bool) {
	if stats == nil {
		return
	}
	s.relayed(model.TCP, stats.TCP, stats.Connections)
	s.relayed(model.UDP, stats.UDP, stats.Sessions)
	s.datagrams(stats.Datagrams)
	for id, n := range stats.Ports {
		if named[id] {
			s.port(id, n)
		}
	}
}

func (s series) relayed(p model.Protocol, n count.Counts, limit int) {
	protocol := p.String()
	s.counter(descRelayed, n.Accepted, protocol)
	s.gauge(descOpen, float64(n.Open), protocol)
	s.gauge(descLimit, float64(limit), protocol)
	for why, times := range n.Refused {
		s.counter(descRefused, times, protocol, count.Reason(why).String())
	}
	s.counter(descDials, n.DialFailures, protocol)
	s.counter(descBytes, n.In, protocol, "in")
	s.counter(descBytes, n.Out, protocol, "out")
	s <- prometheus.MustNewConstSummary(descDuration, n.Ended, float64(n.Duration)/float64(time.Second), nil, protocol)
}

func (s series) datagrams(n udp.Stats) {
	s.counter(descDatagrams, n.In, "in")
	s.counter(descDatagrams, n.Out, "out")
	for why, times := range n.Dropped {
		s.counter(descDropped, times, udp.Drop(why).String())
	}
	for why, times := range n.Ended {
		s.counter(descEnded, times, udp.Ending(why).String())
	}
}

// port tells of one Service port. Who connects to the proxy's own port is none of its clients.
func (s series) port(id plan.PortID, n count.Counts) {
	s.gauge(descPortOpen, float64(n.Open), portLabels(id)...)
	refused := uint64(0)
	for why, times := range n.Refused {
		if count.Reason(why) != count.NotRedirected {
			refused += times
		}
	}
	s.counter(descPortRefused, refused, portLabels(id)...)
	s.counter(descPortDials, n.DialFailures, portLabels(id)...)
	s.counter(descPortBytes, n.In, portLabels(id, "in")...)
	s.counter(descPortBytes, n.Out, portLabels(id, "out")...)
}

// collectLocalhost tells of node ports at loopback addresses, of families that the proxy serves there.
func collectLocalhost(s series, n [2]*localhost.Numbers) {
	for _, f := range model.Families {
		if n[f] != nil {
			s.gauge(descListeners, float64(n[f].Listeners), f.String())
			s.counter(descUnbound, n[f].Failures, f.String())
		}
	}
}
