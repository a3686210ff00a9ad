package ipvs

import (
	"context"
	"errors"
	"fmt"

	"sluice/internal/kernel/link"
)

// Probe tells whether this kernel can do the mode, and what it lacks if not. It tries the scheduler and the device,
// looks for the setting that nothing works without, and leaves nothing behind.
func (b *Backend) Probe(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.probe(ctx); err != nil {
		return fmt.Errorf("this kernel cannot do mode ipvs: %w", err)
	}
	return nil
}

func (b *Backend) probe(ctx context.Context) error {
	if err := b.open(); err != nil {
		return err
	}
	if err := b.servers.TryScheduler(b.opts.Scheduler); err != nil {
		return err
	}
	if err := b.probeDevice(); err != nil {
		return err
	}
	// Before Linux 6.10 there are no such settings in the namespaces of an ordinary user.
	if _, err := b.deps.Sysctl.Get(tracked); err != nil {
		return fmt.Errorf("connection tracking of virtual servers cannot be switched on: %w", err)
	}
	if p, ok := b.deps.Rules.(interface{ Probe(context.Context) error }); ok {
		return p.Probe(ctx)
	}
	return nil
}

// probeDevice makes the device and removes it, unless it is there.
func (b *Backend) probeDevice() error {
	_, err := b.device.AddressesOf(DeviceName)
	if !errors.Is(err, link.ErrNotFound) {
		return err
	}
	if err := b.device.AddDummy(DeviceName); err != nil {
		return err
	}
	return b.device.Delete(DeviceName)
}
