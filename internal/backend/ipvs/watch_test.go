package ipvs

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sluice/internal/backend"
)

// watchedDevice tells of what happens to its addresses when it is asked to.
type watchedDevice struct {
	device
	tell chan struct{}
}

func (d watchedDevice) WatchAddressesOf(ctx context.Context, _ string, changed func()) error {
	for {
		select {
		case <-d.tell:
			changed()
		case <-ctx.Done():
			return nil
		}
	}
}

// TestWatchDevice: addresses that somebody takes from the device, or the device with them, come back at once. What the mode
// does itself, and addresses that others add, disturb nobody.
func TestWatchDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRig(t, Options{}, web(5))
		d := watchedDevice{device{w.kernel}, make(chan struct{})}
		w.backend.deps.Device = func() (Device, error) { return d, nil }
		w.apply(backend.Request{})
		var calls atomic.Int64
		var watching sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		watching.Go(func() { must(t, w.backend.Watch(ctx, func() { calls.Add(1) })) })
		synctest.Wait()
		for name, tt := range map[string]struct {
			do    func()
			calls int64
		}{
			"its own":              {func() { w.change(web(5, 6)); w.apply(backend.Request{}) }, 0},
			"an address of others": {func() { w.links[DeviceName][netip.MustParsePrefix("192.0.2.1/32")] = true }, 0},
			"flushed":              {func() { clear(w.links[DeviceName]) }, 1},
			"deleted":              {func() { delete(w.links, DeviceName) }, 1},
		} {
			before := calls.Load()
			tt.do()
			d.tell <- struct{}{}
			synctest.Wait()
			if n := calls.Load() - before; n != tt.calls {
				t.Errorf("%s: told %d times, want %d", name, n, tt.calls)
			}
			r := w.apply(backend.Request{})
			if (len(r.Restored) > 0) != (tt.calls > 0) || !w.links[DeviceName][netip.MustParsePrefix("10.96.0.10/32")] {
				t.Errorf("%s: restored %q, and there are %v", name, r.Restored, w.links[DeviceName])
			}
		}
		stop()
		watching.Wait()
	})
}
