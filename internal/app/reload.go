package app

import (
	"context"
	"fmt"
	"slices"

	"sluice/internal/config"
	"sluice/internal/reconcile"
)

// configTopic is what problems of the configuration go by.
const configTopic = "configuration"

// reload follows the configuration, if that can be.
func (d *daemon) reload(ctx context.Context) error {
	if d.Reload == nil {
		return nil
	}
	var undone []string
	err := d.Reload(ctx, d.config(), func(next config.Config, warnings []string, err error) {
		if err == nil {
			undone = d.follow(ctx, next)
		} else {
			warnings = append(warnings, err.Error()+" (what it said before stays in force)")
		}
		d.heard(ctx, reconcile.Event{Problems: map[any][]string{configTopic: slices.Concat(warnings, undone)}})
	})
	if err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	return nil
}

// follow does as another configuration says, and tells what of it is not in force. A mode that cannot start leaves the
// one before at work, until the configuration changes again.
func (d *daemon) follow(ctx context.Context, next config.Config) (undone []string) {
	now := d.config()
	if next.Mode == "" {
		mode, _ := choose(ctx) // as a new start would
		next, _ = next.For(mode)
	}
	for _, what := range config.Restart(d.atStart, next) {
		undone = append(undone, what+"; it takes effect when sluice starts again")
	}
	next.Client, next.Plan.NodeName, next.Log.Format = now.Client, now.Plan.NodeName, now.Log.Format
	if err := d.followEngine(ctx, now, next); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		undone = append(undone, fmt.Sprintf("mode %s: %v; the mode stays as it was", next.Mode, err))
		next = withEngineOf(now, next)
		d.followLive(ctx, next)
	}
	d.setConfig(next)
	d.Log.follow(next.Log)
	d.ports.follow(next.Serve)
	d.setUpMachine(next.Host)
	d.Log.Info("the configuration changed", "mode", next.Mode)
	return undone
}

// followEngine passes a configuration on to the engine, or has one start that takes over.
func (d *daemon) followEngine(ctx context.Context, now, next config.Config) error {
	if !needsEngine(now, next) {
		d.followLive(ctx, next)
		return nil
	}
	e, err := d.startEngine(ctx, next)
	if err != nil {
		return err
	}
	return d.handOver(ctx, e)
}

// handOver has an engine take over from the one that runs, and waits until it has: the one before would hear what is
// meant for this one.
func (d *daemon) handOver(ctx context.Context, e *engine) error {
	select {
	case d.engines <- e:
	case <-ctx.Done():
		return e.close()
	}
	select {
	case <-e.inForce:
	case <-ctx.Done():
	}
	return nil
}

// followLive passes a configuration on to the engine that runs.
func (d *daemon) followLive(ctx context.Context, next config.Config) {
	d.send(ctx, reconcile.Event{Config: &reconcile.Live{
		Plan: d.policy(next), SyncPeriod: next.SyncPeriod, MinSyncPeriod: next.MinSyncPeriod,
	}})
}
