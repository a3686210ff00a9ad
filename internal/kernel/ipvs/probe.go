package ipvs

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
)

// ErrNoScheduler occurs when the kernel has no scheduler of a name and cannot load it.
var ErrNoScheduler = errors.New("this kernel has no such scheduler")

// firstTrial and lastTrial are the firewall marks that trials use: so large that nobody's rules give them to packets.
const (
	firstTrial = 0x7fffff00
	lastTrial  = 0x7fffffff
)

// TryScheduler tells whether the kernel has a scheduler, which it loads if it can. It makes a virtual server of a firewall
// mark that nobody has, and removes it: no address is touched, so that nobody's connections can be led astray.
func (h *Handle) TryScheduler(name string) error {
	trial := Server{Name: Name{Addr: netip.IPv4Unspecified(), Mark: firstTrial}, Scheduler: name}
	err := h.Add(trial)
	for ; errors.Is(err, syscall.EEXIST) && trial.Mark < lastTrial; err = h.Add(trial) {
		trial.Mark++ // somebody else's
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("try scheduler %s: %w: %w", name, ErrNoScheduler, err)
	case err != nil:
		return fmt.Errorf("try scheduler %s: %w", name, err)
	}
	return h.Delete(trial.Name)
}

// Loaded reports whether the kernel has virtual servers already, in the namespace of the calling thread. Unlike Open it
// does not have them loaded.
func Loaded() bool {
	_, err := os.Stat("/proc/thread-self/net/ip_vs")
	return err == nil
}
