package ipsets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
)

// Cleanup removes chains, jumps and sets of this form of mode ipvs, whether kube-proxy's or ours, of both families and
// variants. Chains that mode iptables has as well stay if it has taken them over. A set that foreign rules name stays,
// which is an error.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, o := range b.all() {
		if err := cleanupRules(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("clean up %s: %w", o.Name, err))
		}
	}
	for _, s := range b.sides {
		if s != nil {
			s.known, s.wrote = false, nil
			s.gauge.known.Store(nil)
		}
	}
	return errors.Join(append(errs, b.cleanupSets())...)
}

// all are the tables of both families and variants.
func (b *Backend) all() []Other {
	all := slices.Clone(b.deps.Others)
	for f, s := range b.sides {
		if s != nil {
			all = append(all, Other{model.Family(f).String(), s.tables})
		}
	}
	return all
}

// Leftovers tells what Cleanup would remove, a line each. Tables of a family that the kernel lacks have nothing.
func (b *Backend) Leftovers(ctx context.Context) (found []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, o := range b.all() {
		have, err := readRules(ctx, o)
		if err != nil && !errors.Is(err, ErrNoFamily) {
			errs = append(errs, fmt.Errorf("look at %s: %w", o.Name, err))
		}
		if err != nil {
			continue
		}
		d := removal(have)
		for _, table := range tableNames {
			for _, chain := range d[table].remove {
				found = append(found, fmt.Sprintf("chain %s in table %s (%s)", chain, table, o.Name))
			}
		}
	}
	names, err := b.setsFound()
	for _, name := range names {
		found = append(found, "set "+name)
	}
	return found, errors.Join(append(errs, err)...)
}

func cleanupRules(ctx context.Context, t Tables) error {
	have, err := readRules(ctx, t)
	if errors.Is(err, ErrNoFamily) {
		return nil
	}
	if err != nil {
		return err
	}
	d := removal(have)
	if d.size() == 0 {
		return nil
	}
	return t.Restore(ctx, d.text())
}

// removal finds what takes all that is of this form out of have.
func removal(have *rules.Ruleset) delta {
	d, taken := delta{}, takenOver(have)
	for _, name := range tableNames {
		t := &tableDelta{}
		d[name] = t
		goes := func(chain string) bool {
			return isOf(ownChains, name, chain) && !(taken && isOf(sharedChains, name, chain))
		}
		for _, from := range kernelChains {
			for _, r := range rulesOf(have.Table(name).Chain(from)) {
				if to := targetOf(r); goes(to) || to == chainProxyFirewall && isJump(name, from, r) {
					t.edits = append(t.edits, edit{from, deletion, r})
				}
			}
		}
		t.stale(name, have, goes)
	}
	return d
}

// isJump reports whether a rule is one of our jumps. Mode iptables leads to KUBE-PROXY-FIREWALL by others.
func isJump(table, from string, r rules.Rule) bool {
	return slices.ContainsFunc(jumpsFrom(table, from), func(j rules.Rule) bool { return rules.Equal(j, r) })
}

// takenOver reports whether the chains whose names two modes share are those of mode iptables: KUBE-SERVICES is there, and
// does not begin as that of mode ipvs.
func takenOver(have *rules.Ruleset) bool {
	services := have.Table("nat").Chain(chainServices)
	return services != nil && (len(services.Rules) == 0 || !slices.ContainsFunc(loopbackRange[:], func(own string) bool {
		return rules.Equal(services.Rules[0], rule{src: own, target: "RETURN"}.text())
	}))
}

// setsFound lists the sets of this form, of both families.
func (b *Backend) setsFound() (names []string, err error) {
	conn, err := b.deps.Sets()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	all, err := conn.List()
	for _, s := range all {
		if _, _, ok := kindOf(s.Name); ok || slices.Contains(temporary[:], s.Name) {
			names = append(names, s.Name)
		}
	}
	return names, err
}

func (b *Backend) cleanupSets() (err error) {
	names, err := b.setsFound()
	if err != nil || len(names) == 0 {
		return err
	}
	conn, err := b.deps.Sets()
	if err != nil {
		return err
	}
	errs := []error{}
	for _, name := range names {
		errs = append(errs, conn.Destroy(name))
	}
	return errors.Join(append(errs, conn.Close())...)
}
