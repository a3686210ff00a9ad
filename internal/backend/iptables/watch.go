package iptables

import (
	"context"
	"errors"
	"slices"

	"sluice/internal/nft/wire"
)

// Watch has the kernel tell of what others do, and calls changed when it may be to our rules. See [backend.Watcher]. The
// legacy variant tells nothing.
func (b *Backend) Watch(ctx context.Context, changed func()) (err error) {
	if b.deps.Listen == nil {
		return nil
	}
	l, err := b.listen(changed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.unlisten(l)) }()
	changed()
	for {
		touched := false
		err := l.Receive(ctx, func(kind uint16, _ uint32, data []byte) {
			touched = touched || touches(kind, data)
		})
		if err != nil && !isLost(err) {
			return err
		}
		if touched || err != nil {
			changed()
		}
	}
}

// watch is a Watch under way.
type watch struct {
	Listener
	changed func()
}

// listen begins between two Applies, or it would hear what the one under way writes.
func (b *Backend) listen(changed func()) (Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, err := b.deps.Listen()
	if err != nil {
		return nil, err
	}
	b.watch = &watch{l, changed}
	return l, nil
}

func (b *Backend) unlisten(l Listener) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch = nil
	return l.Close()
}

// deaf does something while nobody listens: what we write ourselves is no news, and the kernel would take as long to tell
// of it as to do it. Whether others wrote at the same time is seen by the generation, see missed.
func (b *Backend) deaf(do func() error) error {
	if b.watch == nil {
		return do()
	}
	return errors.Join(b.watch.Pause(), do(), b.watch.Resume())
}

// missed has the tables looked at again if others changed something while nobody listened.
func (b *Backend) missed() {
	if b.watch == nil {
		return
	}
	for _, s := range b.sides {
		if s != nil && s.changedByOthers() {
			b.watch.changed()
			return
		}
	}
}

// nfFamilies are our families as nf_tables numbers them, linux/netfilter.h.
const (
	nfIPv4 = 2
	nfIPv6 = 10
)

// touches reports whether a notification is about something that our rules lean on: a table, a chain of ours, a rule in
// one, or in a chain of the kernel one that is gone or leads to a chain of ours. A message that cannot be read may be
// about anything.
func touches(kind uint16, data []byte) bool {
	switch kind {
	case wire.DelTable:
		t, err := wire.DecodeTable(data)
		_, ok := tableNamed(t.Family, t.Name)
		return ok || err != nil
	case wire.NewChain, wire.DelChain:
		c, err := wire.DecodeChain(data)
		t, ok := tableNamed(c.Family, c.Table)
		return err != nil || ok && (holdsOurs(t, c.Name) || kind == wire.DelChain && isKernels(c.Name))
	case wire.NewRule, wire.DelRule:
		r, err := wire.DecodeRule(data)
		t, ok := tableNamed(r.Family, r.Table)
		return err != nil || ok && (holdsOurs(t, r.Chain) || isKernels(r.Chain) && (kind == wire.DelRule || holdsOurs(t, r.Target)))
	}
	return false
}

func tableNamed(family uint8, name string) (Table, bool) {
	at := slices.IndexFunc(tables[:], func(t Table) bool { return t.String() == name })
	return Table(max(at, 0)), at >= 0 && (family == nfIPv4 || family == nfIPv6)
}

// holdsOurs reports whether there are rules of ours in a chain.
func holdsOurs(t Table, chain string) bool {
	return own(t, chain) || t == Filter && chain == chainFirewall
}

func isKernels(chain string) bool { return slices.Contains(kernelChains[:], chain) }
