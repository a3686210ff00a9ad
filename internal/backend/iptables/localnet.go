package iptables

import (
	"strings"

	"sluice/internal/model"
)

// localnet is the setting by which the kernel routes loopback addresses, which node ports on localhost need. It lets
// packets to these in from the network, which KUBE-FIREWALL drops. That chain is not ours alone, so the setting is only on
// while there is a use for it.
type localnet struct {
	set func(on bool) error // nil: somebody else's business
	// on is set if it may be on for our sake.
	on bool
	// failed is why it could not be set back in this Apply.
	failed error
}

// find finds out from the tables whether an earlier process had a use for it: the guard of node ports on localhost is
// no other proxy's.
func (l *localnet) find(have contents) {
	first, rest, _ := strings.Cut(have[Nat][chainNodePorts], "\n")
	if rest != "" && sameLine(first, strings.TrimSuffix(nodePortGuardRule(model.IPv4), "\n")) {
		l.on = true
	}
}

// unrouteBefore sets it back if f, which is about to be written, has no use for it. If that fails, f guards loopback
// addresses all the same.
//
// While there may be node ports on localhost the guard is looked after, so that there is no haste: a last one that comes
// back before the next recheck finds its connections alive.
func (l *localnet) unrouteBefore(f *family, recheck bool) *family {
	if l.set == nil || !l.on || f.localhost() || f.firewall != "" && !recheck {
		return f
	}
	if l.failed = l.set(false); l.failed == nil {
		l.on = false
		return f
	}
	guarded := *f
	guarded.firewall = guardRule(f.family)
	return &guarded
}

// route sets it if f, which is written, has node ports on localhost: not before KUBE-FIREWALL guards loopback addresses.
// It tells as well if it could not be set back.
func (l *localnet) route(f *family) (err error) {
	err, l.failed = l.failed, nil
	if l.set != nil && f.localhost() {
		l.on = true
		err = l.set(true)
	}
	return err
}

// unroute sets it back, whoever set it.
func (b *Backend) unroute() error {
	if b.deps.RouteLocalnet == nil {
		return nil
	}
	return b.deps.RouteLocalnet(false)
}
