package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
	"sluice/internal/relay"
	"sluice/internal/relay/localhost"
	"sluice/internal/status"
)

// Source is who a scrape asks. Any function may be nil; what it would tell is absent then.
type Source struct {
	Health  func() reconcile.Health
	Pending func() (services, slices int)
	States  func() map[reconcile.State]int // Service ports by state
	// Connections tells how many connections each Service port has had so far, and waits no longer than ctx.
	Connections func(ctx context.Context) (map[plan.PortID]uint64, error)
	// API is how the daemon stands with the API server; nil: there is none.
	API func() *status.API
	// Rules and Packets are of mode iptables: its rules by table, and what they have counted.
	Rules   func() []backend.TableRules
	Packets func(ctx context.Context) (backend.Packets, error)
	// Relay tells what the proxy has done; nil: there is none.
	Relay func() *relay.Stats
	// Localhost tells of node ports at the loopback address of each family that the proxy serves; nil: it does not.
	Localhost func() [2]*localhost.Numbers
}

// asked are the metrics that a scrape asks for.
type asked struct {
	source      atomic.Pointer[Source]
	connections connections
	packets     packets
}

var (
	descQueued    = desc(kubeProxy("sync_proxy_rules_last_queued_timestamp_seconds"), "When a change that concerns the rules last came in.", labelFamily)
	descServices  = desc(kubeProxy("sync_proxy_rules_service_changes_pending"), "Changed Services that the rules do not follow yet.")
	descEndpoints = desc(kubeProxy("sync_proxy_rules_endpoint_changes_pending"), "Changed EndpointSlices that the rules do not follow yet.")
	descHealthy   = desc("sluice_healthy", "1 if changes reach the kernel, 0 if one has been waiting for two sync periods.", labelFamily)
	descStates    = desc("sluice_service_port_states", "Service ports by how far they are in the kernel.", "state")
	descOf        = descOfPort("sluice_service_connections_total", "New connections of a Service port.")
	descOther     = desc("sluice_other_service_connections_total", "New connections of all Service ports that have no series of their own.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (a *asked) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descQueued, descServices, descEndpoints, descHealthy, descStates, descOf, descOther,
		descConnected, descKindSynced, descKindConnected, descKindSince, descKindObjects,
		descRules, descRulesLast, descInvalid, descLocalhost,
	} {
		ch <- d
	}
	for _, d := range relayDescs() {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (a *asked) Collect(ch chan<- prometheus.Metric) {
	s := a.source.Load()
	if s == nil {
		return
	}
	gauge := series(ch).gauge
	if s.Health != nil {
		collectHealth(gauge, s.Health())
	}
	if s.Pending != nil {
		services, slices := s.Pending()
		gauge(descServices, float64(services))
		gauge(descEndpoints, float64(slices))
	}
	if s.States != nil {
		states := s.States()
		for _, state := range []reconcile.State{reconcile.Pending, reconcile.Done, reconcile.Failed} {
			gauge(descStates, float64(states[state]), string(state))
		}
	}
	if s.API != nil {
		collectAPI(gauge, s.API())
	}
	if s.Rules != nil {
		collectRules(gauge, s.Rules())
	}
	if s.Packets != nil {
		a.packets.collect(ch, s.Packets, time.Now())
	}
	if s.Connections != nil {
		a.connections.collect(ch, s.Connections, time.Now())
	}
	if s.Relay != nil {
		collectRelay(ch, s.Relay(), a.connections.whoIsNamed())
	}
	if s.Localhost != nil {
		collectLocalhost(ch, s.Localhost())
	}
}

func collectHealth(gauge func(*prometheus.Desc, float64, ...string), h reconcile.Health) {
	for _, f := range model.Families {
		gauge(descHealthy, one(h.Family[f].Healthy), f.String())
		if at := h.Family[f].Asked; !at.IsZero() {
			gauge(descQueued, seconds(at), f.String())
		}
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
