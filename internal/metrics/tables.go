package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/backend"
)

// packetLimit is how long a scrape waits for the counters of rules.
const packetLimit = 2 * time.Second

var (
	descRules     = desc(kubeProxy("sync_proxy_rules_iptables_total"), "Rules in chains of ours.", "table", labelFamily)
	descRulesLast = desc(kubeProxy("sync_proxy_rules_iptables_last"), "Rules that were last written.", "table", labelFamily)
	descInvalid   = desc(kubeProxy("iptables_ct_state_invalid_dropped_packets_total"), "Packets dropped that connection tracking calls invalid.")
	descLocalhost = desc(kubeProxy("iptables_localhost_nodeports_accepted_packets_total"), "Packets that began connections to node ports on loopback addresses.")
)

// packets are what rules have counted.
type packets struct {
	mu   sync.Mutex
	pace pace
	last backend.Packets
}

func (p *packets) collect(ch chan<- prometheus.Metric, count func(context.Context) (backend.Packets, error), now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace.read(now, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), packetLimit)
		defer cancel()
		counts, err := count(ctx)
		if err == nil {
			p.last = counts
		}
		return err // of which who counts tells
	})
	for d, n := range map[*prometheus.Desc]*uint64{descInvalid: p.last.Invalid, descLocalhost: p.last.Localhost} {
		if n != nil {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(*n))
		}
	}
}

func collectRules(gauge func(*prometheus.Desc, float64, ...string), all []backend.TableRules) {
	for _, n := range all {
		gauge(descRules, float64(n.Held), n.Table, n.Family.String())
		gauge(descRulesLast, float64(n.Written), n.Table, n.Family.String())
	}
}
