package app

import (
	"context"
	"fmt"

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
	err := d.Reload(ctx, d.config(), func(next config.Config, warnings []string, err error) {
		if err != nil {
			err = fmt.Errorf("%w (what it said before stays in force)", err)
			warnings = append(warnings, err.Error())
		} else {
			d.follow(ctx, next)
		}
		d.heard(ctx, reconcile.Event{Problems: map[any][]string{configTopic: warnings}})
	})
	if err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	return nil
}

// follow does as another configuration says. A mode that cannot start leaves the one before in force.
func (d *daemon) follow(ctx context.Context, next config.Config) {
	now := d.config()
	if next.Mode == "" {
		next, _ = next.For(now.Mode) // the kernel can still do what it could
	}
	for _, what := range config.Restart(d.atStart, next) {
		d.Log.Warn("this takes effect when sluice starts again", "what", what)
	}
	next.Client, next.Plan.NodeName = now.Client, now.Plan.NodeName
	if err := d.followEngine(ctx, now, next); err != nil {
		d.Log.Error("the mode stays as it was", "wanted", next.Mode, "error", err)
		next, _ = next.For(now.Mode)
		_ = d.followEngine(ctx, now, next)
	}
	d.setConfig(next)
	d.Log.follow(next.Log)
	d.ports.follow(next.Serve)
	d.setUpMachine()
	d.Log.Info("the configuration changed", "mode", next.Mode)
}

// followEngine passes a configuration on to the engine, or starts one that takes over.
func (d *daemon) followEngine(ctx context.Context, now, next config.Config) error {
	if !needsEngine(now, next) {
		d.send(ctx, reconcile.Event{Config: &reconcile.Live{
			Plan: planConfig(next), SyncPeriod: next.SyncPeriod, MinSyncPeriod: next.MinSyncPeriod,
		}})
		return nil
	}
	e, err := startEngine(ctx, next, d.Log.Logger)
	if err != nil {
		return err
	}
	select {
	case d.engines <- e:
		return nil
	case <-ctx.Done():
		return e.close()
	}
}
