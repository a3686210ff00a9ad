package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"sluice/internal/backend"
	"sluice/internal/backend/iptables"
	"sluice/internal/backend/nftables"
	"sluice/internal/config"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// iptablesMode has the chains of kube-proxy's iptables mode, in either variant of the programs.
type iptablesMode struct {
	variant iptexec.Variant // the one that is written, after start
}

func (*iptablesMode) name() string { return config.ModeIPTables }

func (*iptablesMode) compile(p *plan.Plan, c config.Config) backend.Ruleset {
	return iptables.Compile(p, iptablesOptions(c))
}

// iptablesOptions are those for rules that are only looked at.
func iptablesOptions(c config.Config) iptables.Options {
	o := iptables.DefaultOptions()
	o.MasqueradeBit = c.MasqueradeBit
	return o
}

// iptablesOptionsHere are those for this kernel.
func iptablesOptionsHere(c config.Config) (o iptables.Options, err error) {
	o = iptablesOptions(c)
	o.TCPBeLiberal, err = beLiberal()
	return o, err
}

func (*iptablesMode) render(w *world, o RenderOptions, out io.Writer) error {
	f, all, err := parseFamily(o.Family)
	if err != nil {
		return err
	}
	if all {
		f = w.onlyFamily(w.Messages)
	}
	return iptables.Compile(w.Plan(), iptablesOptions(w.Config)).RenderFamily(out, f)
}

func parseFamily(s string) (f model.Family, all bool, err error) {
	switch strings.ToLower(s) {
	case "":
		return model.IPv4, true, nil
	case "ipv4":
		return model.IPv4, false, nil
	case "ipv6":
		return model.IPv6, false, nil
	}
	return 0, false, wrongInputf("--family %q: want ipv4 or ipv6", s)
}

// onlyFamily is IPv4, unless all Services are IPv6. One restore program takes one family, so the other is not printed;
// that it exists is told.
func (w *world) onlyFamily(messages io.Writer) model.Family {
	var has [2]bool
	for id := range w.Plan().Ports {
		has[id.Family] = true
	}
	if has[model.IPv4] && has[model.IPv6] {
		_, _ = fmt.Fprintln(messages, "these are the rules for IPv4; those for IPv6 come with --family ipv6")
	}
	if has[model.IPv6] && !has[model.IPv4] {
		return model.IPv6
	}
	return model.IPv4
}

func (m *iptablesMode) start(ctx context.Context, c config.Config, log *slog.Logger, loaded func()) (backend.Backend, error) {
	deps, variant, lacking, err := iptablesTables(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := iptexec.Find(ctx, variant)
	if err != nil {
		return nil, err
	}
	log.Info("iptables is here", "variant", string(variant), "version", tools.Version)
	deps.RouteLocalnet = forDaemon(setRouteLocalnet, log)
	if lacking != nil {
		log.Warn("a family of addresses is left out", "because", lacking)
	}
	loaded()
	opts, err := iptablesOptionsHere(c)
	if err != nil {
		return nil, err
	}
	m.variant = variant
	return iptables.New(opts, deps), nil
}

// iptablesTables finds the tables of this network namespace, save those of families that the kernel lacks, which
// lacking tells of. At least one family is there. That the other variant's tables cannot be read is no error here: who
// looks at them is told.
func iptablesTables(ctx context.Context) (deps iptables.Deps, used iptexec.Variant, lacking, err error) {
	if deps, used, err = iptables.System(ctx, ""); err != nil {
		return deps, used, nil, err
	}
	for _, f := range model.Families {
		switch probeErr := deps.Tables[f].Probe(ctx); {
		case errors.Is(probeErr, iptables.ErrNoFamily):
			lacking = errors.Join(lacking, probeErr)
			deps.Tables[f] = nil
		default:
			err = errors.Join(err, probeErr)
		}
	}
	deps.Others = slices.DeleteFunc(deps.Others, func(o iptables.Other) bool {
		return errors.Is(o.Probe(ctx), iptables.ErrNoFamily)
	})
	if deps.Tables == [2]iptables.Tables{} {
		err = errors.Join(lacking, err)
	}
	return deps, used, lacking, err
}

func (m *iptablesMode) keeps() keeps { return keeps{chains: m.variant} }

// cleanup removes the chains of both variants, save of the one that is in use. It runs programs for those of legacy
// iptables alone, and only if there are tables of it.
func (*iptablesMode) cleanup(ctx context.Context, l leftovers) (removed []string, err error) {
	if l.keepKubeProxy {
		return nil, nil
	}
	var errs []error
	if l.chains != iptexec.NFT && !nfnl.Absent() {
		errs = append(errs, withNFTables(nftables.Deps{RouteLocalnet: l.routeLocalnet}, func(b *nftables.Backend) (err error) {
			removed, err = b.CleanupIPTables(ctx)
			return err
		}))
	}
	if l.chains != iptexec.Legacy && iptexec.LegacyInUse() {
		found, err := cleanupLegacy(ctx, l.routeLocalnet)
		removed, errs = append(removed, found...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func cleanupLegacy(ctx context.Context, routeLocalnet func(on bool) error) (removed []string, err error) {
	deps, _, err := iptables.System(ctx, iptexec.Legacy)
	if errors.Is(err, iptexec.ErrNotInstalled) {
		return nil, fmt.Errorf("whether a proxy left rules in legacy iptables cannot be seen: %w", err)
	}
	if err != nil {
		return nil, err
	}
	var tables []iptables.Other
	for f, t := range deps.Tables {
		if !errors.Is(t.Probe(ctx), iptables.ErrNoFamily) {
			tables = append(tables, iptables.Other{Name: fmt.Sprintf("%s (%s)", model.Family(f), iptexec.Legacy), Tables: t})
		}
	}
	b := iptables.New(iptables.DefaultOptions(), iptables.Deps{Others: tables, RouteLocalnet: routeLocalnet})
	removed, err = b.OtherVariant(ctx)
	return removed, errors.Join(err, b.Cleanup(ctx))
}
