package app

import (
	"context"
	"log/slog"
	"sync/atomic"

	"sluice/internal/backend"
	"sluice/internal/metrics"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

// counts are what a mode counts, each nil where it does not. They may be asked for at any time.
type counts struct {
	connections func(context.Context) (map[plan.PortID]uint64, error)
	packets     func(context.Context) (backend.Packets, error)
	rules       func() []backend.TableRules
}

func countsOf(be backend.Backend, log *slog.Logger) (c counts) {
	if counter, ok := be.(backend.Counter); ok {
		c.connections = toldOnce(counter.Connections, "connections", log)
	}
	if counter, ok := be.(backend.PacketCounter); ok {
		c.packets = toldOnce(counter.Packets, "packets", log)
	}
	if counter, ok := be.(backend.RuleCounter); ok {
		c.rules = counter.Rules
	}
	return c
}

// toldOnce tells of a failure of count, and of another after it has worked in between: it is asked for again and again.
// That there was no time for it is none.
func toldOnce[T any](count func(context.Context) (T, error), what string, log *slog.Logger) func(context.Context) (T, error) {
	var fails atomic.Bool
	return func(ctx context.Context) (T, error) {
		counted, err := count(ctx)
		switch {
		case err == nil:
			fails.Store(false)
		case ctx.Err() == nil && !fails.Swap(true):
			log.Warn("the kernel cannot be asked what it has counted", "what", what, "error", err)
		}
		return counted, err
	}
}

// metricsSource is what a scrape asks while e works.
func (d *daemon) metricsSource(e *engine, loop *reconcile.Loop) metrics.Source {
	return metrics.Source{
		Health: loop.Health, Pending: loop.Pending,
		States:      func() map[reconcile.State]int { return loop.Summary().Ports },
		API:         d.source.state,
		Connections: e.counts.connections, Packets: e.counts.packets, Rules: e.counts.rules,
		Relay: d.relay.stats, Localhost: d.local.Numbers,
	}
}
