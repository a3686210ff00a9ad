package ipvs

import (
	"context"
	"errors"
	"fmt"

	"sluice/internal/kernel/ipvs"
)

// Cleanup removes the virtual servers that are ours, the device, and the rules beside them. Connections through them end.
// Virtual servers of others stay, and the device with their addresses where they have some there.
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
		removed = append(removed, countOf(number, "virtual server", "virtual servers"))
	}
	what, err := b.removeDevice()
	if what != "" {
		removed = append(removed, what)
	}
	return removed, errors.Join(err, b.removeStandIns())
}

// removeStandIns removes the local routes, whoever has connections.
func (b *Backend) removeStandIns() error {
	for _, a := range sortedAddrs(b.known.standIns) {
		if err := b.do(operation{verb: deleteStandIn, addr: a}); err != nil {
			return err
		}
	}
	return nil
}

// removeDevice removes the device, or its addresses but for those where others have virtual servers. It tells what it was.
func (b *Backend) removeDevice() (what string, err error) {
	switch {
	case !b.known.device:
		return "", nil
	case !b.known.serves():
		return "interface " + DeviceName, b.do(operation{verb: deleteDevice})
	}
	n, err := b.removeAddresses()
	if n > 0 {
		what = countOf(n, "address", "addresses") + " of " + DeviceName
	}
	return what, err
}

// removeAddresses removes the addresses of the device that have no virtual servers.
func (b *Backend) removeAddresses() (n int, err error) {
	for _, a := range sortedAddrs(b.known.addrs) {
		if b.known.at[a] > 0 {
			continue
		}
		if err := b.do(operation{verb: deleteAddress, addr: a}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// lookForOurs reads what the kernel has, and reports whether there is anything. It does not have it load ip_vs for that.
func (b *Backend) lookForOurs(ctx context.Context) (found bool, err error) {
	if b.known, err = b.observeLeft(ctx); err != nil {
		return false, err
	}
	return b.known.device || len(b.known.ours()) > 0 || len(b.known.standIns) > 0, nil
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

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
