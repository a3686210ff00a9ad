package ipvs

import (
	"context"
	"errors"
	"fmt"

	"sluice/internal/kernel/ipvs"
)

// Cleanup removes the virtual servers that are ours, the device, and the rules beside them. Connections through them end.
// Virtual servers of others stay.
func (b *Backend) Cleanup(ctx context.Context) error {
	_, err := b.CleanupServers(ctx)
	if b.deps.Rules != nil {
		err = errors.Join(err, b.deps.Rules.Cleanup(ctx))
	}
	return err
}

// CleanupServers is Cleanup without the rules. It tells what there was.
func (b *Backend) CleanupServers(ctx context.Context) (removed []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, err := b.lookForOurs(ctx)
	if err != nil || !found {
		return nil, err
	}
	defer func() { b.known = nil }()
	number := 0
	for _, s := range b.known.ours() {
		if err := b.do(operation{verb: deleteServer, server: s}); err != nil {
			return removed, err
		}
		number++
	}
	if number > 0 {
		removed = append(removed, countOf(number))
	}
	if !b.known.device {
		return removed, nil
	}
	if err := b.do(operation{verb: deleteDevice}); err != nil {
		return removed, err
	}
	return append(removed, "interface "+DeviceName), nil
}

// lookForOurs reads what the kernel has, and reports whether there is anything. It does not have it load ip_vs for that.
func (b *Backend) lookForOurs(ctx context.Context) (found bool, err error) {
	if b.known, err = b.observeLeft(ctx); err != nil {
		return false, err
	}
	return b.known.device || len(b.known.ours()) > 0, nil
}

func (b *Backend) observeLeft(ctx context.Context) (*state, error) {
	if b.servers == nil && !b.deps.Loaded() {
		if err := b.openDevice(); err != nil {
			return nil, err
		}
		s := newState()
		return s, b.observeDevice(s)
	}
	if err := b.open(); err != nil {
		return nil, err
	}
	return b.observe(ctx)
}

// loaded is whether the kernel has virtual servers, unless told otherwise.
func loaded() bool { return ipvs.Loaded() }

func countOf(servers int) string {
	if servers == 1 {
		return "1 virtual server"
	}
	return fmt.Sprintf("%d virtual servers", servers)
}
