package app

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"sluice/internal/config"
	"sluice/internal/reconcile"
)

// configTopic is what problems of the configuration go by.
const configTopic = "configuration"

// warned is what is wrong with the configuration from the start.
func (d *daemon) warned() map[any][]string { return map[any][]string{configTopic: d.Warnings} }

// reload follows the configuration, if that can be.
func (d *daemon) reload(ctx context.Context) error {
	if d.Reload == nil {
		return nil
	}
	f, readings := follower{daemon: d, read: d.Warnings}, make(chan reading)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { f.run(ctx, readings); return nil })
	group.Go(func() error {
		err := d.Reload(ctx, d.config(), func(next config.Config, warnings []string, err error) {
			select {
			case readings <- reading{next, warnings, err}:
			case <-ctx.Done():
			}
		})
		if err != nil {
			return fmt.Errorf("watch the configuration: %w", err)
		}
		return nil
	})
	return group.Wait()
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
		Plan: d.planBy(next), SyncPeriod: next.SyncPeriod, MinSyncPeriod: next.MinSyncPeriod,
	}})
}
