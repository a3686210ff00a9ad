package metrics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/plan"
)

const (
	// maxNamed is how many Service ports have a series of their own. More would cost a Prometheus server more than they
	// tell: a node of 10,000 Services, a hundred times in a cluster, is a million series.
	maxNamed = 1000
	// countLimit is how long a scrape waits for an Apply. After it the former counts stand.
	countLimit = time.Second
)

// connections are the connections of Service ports. A port keeps its series until it goes, and what the others had is
// summed as it comes, so that no counter ever falls: one that fell would look like a restart.
type connections struct {
	mu    sync.Mutex
	pace  pace
	last  map[plan.PortID]uint64
	named map[plan.PortID]bool
	other uint64 // of those that are not named
}

func (c *connections) collect(ch chan<- prometheus.Metric, count func(context.Context) (map[plan.PortID]uint64, error), now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.read(now, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), countLimit)
		defer cancel()
		counts, err := count(ctx)
		if err == nil && counts != nil {
			c.update(counts)
		}
		return err // of which who counts tells
	})
	if c.last == nil {
		return
	}
	for id := range c.named {
		ch <- prometheus.MustNewConstMetric(descOf, prometheus.CounterValue, float64(c.last[id]), portLabels(id)...)
	}
	ch <- prometheus.MustNewConstMetric(descOther, prometheus.CounterValue, float64(c.other))
}

// whoIsNamed are the Service ports that have series of their own.
func (c *connections) whoIsNamed() map[plan.PortID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.named)
}

// update takes in what each Service port has had so far.
func (c *connections) update(counts map[plan.PortID]uint64) {
	maps.DeleteFunc(c.named, func(id plan.PortID, _ bool) bool { _, there := counts[id]; return !there })
	c.name(counts)
	for id, n := range counts {
		if c.named[id] {
			continue
		}
		if was := c.last[id]; n >= was {
			c.other += n - was
		} else {
			c.other += n // it went and came again
		}
	}
	c.last = counts
}

// name gives the free series to the busiest of those that other has nothing of.
func (c *connections) name(counts map[plan.PortID]uint64) {
	if c.named == nil {
		c.named = map[plan.PortID]bool{}
	}
	if len(c.named) == maxNamed {
		return
	}
	var fresh []plan.PortID
	for id := range counts {
		if _, seen := c.last[id]; !seen && !c.named[id] {
			fresh = append(fresh, id)
		}
	}
	slices.SortFunc(fresh, func(a, b plan.PortID) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), a.Compare(b))
	})
	for _, id := range fresh[:min(len(fresh), maxNamed-len(c.named))] {
		c.named[id] = true
	}
}
