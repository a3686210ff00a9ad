package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/config"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// nftablesMode has one table of maps, written over netlink.
type nftablesMode struct {
	started bool
}

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

func (*nftablesMode) diff(context.Context, *world, io.Writer) (Outcome, error) {
	return Good, errors.New("the table of this kernel cannot be read")
}

func (*nftablesMode) trace(context.Context, *world, Question) (trace.Result, error) {
	return trace.Result{}, errors.New("the table of this kernel cannot be read")
}

func (m *nftablesMode) start(_ context.Context, c config.Config, log *slog.Logger) (backend.Backend, error) {
	opts, err := nftablesOptionsHere(c)
	if err != nil {
		return nil, err
	}
	m.started = true
	return nftables.New(opts, nftables.Deps{RouteLocalnet: forDaemon(setRouteLocalnet, log)}), nil
}

func (m *nftablesMode) cleanup(ctx context.Context, routeLocalnet func(on bool) error) (removed []string, err error) {
	if m.started {
		return nil, nil
	}
	return nil, nftables.New(nftables.DefaultOptions(), nftables.Deps{RouteLocalnet: routeLocalnet}).Cleanup(ctx)
}
