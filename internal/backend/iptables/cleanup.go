package iptables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/model"
)

// Cleanup removes all chains of ours and the jumps to them, from the tables of both variants. KUBE-FIREWALL stays
// where kubelet is at work, or where others have rules in it; so do chains that rules of others lead to, emptied, which
// is an error.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.deps.Others)
	for f, s := range b.sides {
		if s != nil {
			s.forget()
			all = append(all, Other{model.Family(f).String(), s.tables})
		}
	}
	var errs []error
	for _, o := range all {
		if err := b.cleanup(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("clean up %s: %w", o.Name, err))
		}
	}
	return errors.Join(errs...)
}

// cleanup leaves chains that are held, and tells of them.
func (b *Backend) cleanup(ctx context.Context, t Tables) error {
	var held held
	for {
		d, have, err := b.cleanupOnce(ctx, t, &held)
		if err == nil {
			have.advance(d)
			return errHeld(have)
		}
		if !held.note(d, refusedLine(err)) {
			return err
		}
	}
}

// cleanupOnce tells as well what there was, and what it did or was to do about it.
func (b *Backend) cleanupOnce(ctx context.Context, t Tables, held *held) (d delta, have contents, err error) {
	have, err = read(ctx, t, contents{})
	if err != nil {
		return d, have, err
	}
	d = removal(have)
	held.spare(&d, have)
	var unrouted error
	if guardIsOurs(have) {
		// The guard goes after what it guards: packets to loopback addresses must not get in between.
		if unrouted = b.unroute(); unrouted == nil {
			d[Filter].unguard(have[Filter])
		}
	}
	if d.size() == 0 {
		return d, have, unrouted
	}
	return d, have, errors.Join(unrouted, t.Restore(ctx, d.text()))
}

// kubeletChains tell that kubelet is at work, which needs KUBE-FIREWALL as well.
var kubeletChains = [...]string{"KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"}

// guardIsOurs reports whether KUBE-FIREWALL holds our rule and no other, on a node without kubelet.
func guardIsOurs(have contents) bool {
	for _, name := range kubeletChains {
		if _, ok := have[Mangle][name]; ok {
			return false
		}
	}
	rules := lines(have[Filter][chainFirewall])
	return len(rules) == 1 && sameLine(rules[0], strings.TrimSuffix(guardRule(model.IPv4), "\n"))
}

// unguard removes KUBE-FIREWALL and the jumps to it.
func (d *tableDelta) unguard(have map[string]string) {
	for _, from := range kernelChains {
		for _, l := range lines(have[from]) {
			if targetOf(l) == chainFirewall {
				d.edits = append(d.edits, edit{deletion, jump{Filter, from, l}})
			}
		}
	}
	d.remove = append(d.remove, chainFirewall)
}

// removal finds what takes all that is ours out of have.
func removal(have contents) (d delta) {
	for _, t := range tables {
		for _, from := range kernelChains {
			for _, l := range lines(have[t][from]) {
				if own(t, targetOf(l)) {
					d[t].edits = append(d[t].edits, edit{deletion, jump{t, from, l}})
				}
			}
		}
		d[t].stale(t, nil, have[t])
	}
	return d
}

// OtherVariant tells of chains of ours in tables that this mode does not write: rules of an earlier proxy, which
// still act on packets. Each finding is a line.
func (b *Backend) OtherVariant(ctx context.Context) (found []string, err error) {
	var errs []error
	for _, o := range b.deps.Others {
		have, err := read(ctx, o, contents{})
		if err != nil {
			errs = append(errs, fmt.Errorf("look at %s: %w", o.Name, err))
			continue
		}
		if n := ownCount(have); n > 0 {
			found = append(found, fmt.Sprintf("%s: %d chains of a Service proxy", o.Name, n))
		}
	}
	return found, errors.Join(errs...)
}

func ownCount(have contents) (n int) {
	for _, t := range tables {
		for name := range have[t] {
			if own(t, name) {
				n++
			}
		}
	}
	return n
}
