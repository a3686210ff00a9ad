package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/config"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/nftwalk"
)

// nftablesMode has one table of maps, written over netlink.
type nftablesMode struct{}

func (*nftablesMode) name() string { return config.ModeNFTables }

func (*nftablesMode) compile(p *plan.Plan, c config.Config) backend.Ruleset {
	return nftables.Compile(p, nftablesOptions(c))
}

// nftablesOptions are those for rules that are only looked at.
func nftablesOptions(c config.Config) nftables.Options {
	o := nftables.DefaultOptions()
	o.MasqueradeBit = c.MasqueradeBit
	return o
}

// nftablesOptionsHere are those for this kernel.
func nftablesOptionsHere(c config.Config) (o nftables.Options, err error) {
	o = nftablesOptions(c)
	o.TCPBeLiberal, err = beLiberal()
	return o, err
}

func (m *nftablesMode) render(w *world, _ RenderOptions, out io.Writer) error {
	return m.compile(w.Plan(), w.Config).Render(out)
}

func (*nftablesMode) diff(ctx context.Context, w *world, out io.Writer) (outcome Outcome, err error) {
	opts, err := nftablesOptionsHere(w.Config)
	if err != nil {
		return Good, err
	}
	b := nftables.New(opts, nftables.Deps{})
	defer func() { err = errors.Join(err, b.Close()) }()
	lines, err := b.Compare(ctx, nftables.Compile(w.Plan(), opts))
	if err != nil {
		return Good, err
	}
	return printDifferences(out, lines)
}

// printDifferences prints a line for each; any is bad news.
func printDifferences(out io.Writer, lines []string) (outcome Outcome, err error) {
	for _, l := range lines {
		outcome = BadNews
		if _, err := fmt.Fprintln(out, l); err != nil {
			return Good, err
		}
	}
	return outcome, nil
}

func (*nftablesMode) trace(ctx context.Context, w *world, q Question) (r trace.Result, err error) {
	opts, err := nftablesOptionsHere(w.Config)
	if err != nil {
		return r, err
	}
	routed, err := routesLocalnet()
	if err != nil {
		return r, err
	}
	b := nftables.New(opts, nftables.Deps{})
	defer func() { err = errors.Join(err, b.Close()) }()
	host := nftwalk.Host{Addrs: w.Plan().Node.Addresses, RouteLocalnet: routed}
	r, err = b.TraceKernel(ctx, nftables.Compile(w.Plan(), opts), q.packet(&w.Plan().Node), host)
	if err != nil {
		return r, err
	}
	err = keeps{table: true}.meetOthers(ctx, model.FamilyOf(q.From), &r)
	return r, err
}

func (*nftablesMode) start(ctx context.Context, c config.Config, log *slog.Logger, loaded func()) (backend.Backend, error) {
	// The kernel loads connection tracking when it is asked for a rule that needs it, and has its settings from then on.
	if err := probeNFTables(ctx); err != nil {
		return nil, err
	}
	loaded()
	opts, err := nftablesOptionsHere(c)
	if err != nil {
		return nil, err
	}
	return nftables.New(opts, nftables.Deps{RouteLocalnet: forDaemon(setRouteLocalnet, log)}), nil
}

func (*nftablesMode) keeps() keeps { return keeps{table: true} }

// probeNFTables tells what keeps this kernel from doing mode nftables.
func probeNFTables(ctx context.Context) error {
	return withNFTables(nftables.Deps{}, func(b *nftables.Backend) error { return b.Probe(ctx) })
}

// cleanup removes our table, unless it is in use, and kube-proxy's.
func (*nftablesMode) cleanup(ctx context.Context, l leftovers) (removed []string, err error) {
	if nfnl.Absent() {
		return nil, nil
	}
	deps := nftables.Deps{RouteLocalnet: l.routeLocalnet}
	if l.keepKubeProxy {
		deps.RouteLocalnet = nil // kube-proxy may need it
	}
	err = withNFTables(deps, func(b *nftables.Backend) (err error) {
		if !l.keepKubeProxy {
			removed, err = b.CleanupKubeProxy(ctx)
		}
		if err != nil || l.table {
			return err
		}
		has, err := b.HasTable(ctx)
		if err != nil || !has {
			return err
		}
		if err = b.Cleanup(ctx); err == nil {
			removed = append(removed, "table inet sluice")
		}
		return err
	})
	return removed, err
}

// withNFTables lends a backend for one errand in this kernel.
func withNFTables(deps nftables.Deps, f func(*nftables.Backend) error) error {
	b := nftables.New(nftables.DefaultOptions(), deps)
	return errors.Join(f(b), b.Close())
}
