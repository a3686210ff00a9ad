package app

import (
	"context"
	"io"
	"log/slog"

	"sluice/internal/backend"
	"sluice/internal/backend/userspace"
	"sluice/internal/config"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// userspaceMode has the daemon itself pass connections on. Rules of another mode lead them to it.
type userspaceMode struct {
	relay *relayOfDaemon
	inner mode
}

func (*userspaceMode) name() string { return config.ModeUserspace }

// rules is the inner mode: the best that this kernel can do, and nftables where nobody asked the kernel.
func (m *userspaceMode) rules() mode {
	if m.inner == nil {
		return &nftablesMode{}
	}
	return m.inner
}

// rulesHere asks the kernel.
func (m *userspaceMode) rulesHere(ctx context.Context) (because string) {
	name, because := choose(ctx)
	m.inner = rulesOf(name)
	return because
}

func (m *userspaceMode) compile(p *plan.Plan, c config.Config) backend.Ruleset {
	return m.proxied(p, c)
}

func (m *userspaceMode) proxied(p *plan.Plan, c config.Config) *userspace.Ruleset {
	inner := func(p *plan.Plan) backend.Ruleset { return m.rules().compile(p, c) }
	return userspace.Compile(p, userspaceOptions(c), inner)
}

func userspaceOptions(c config.Config) userspace.Options {
	o := userspace.DefaultOptions()
	if c.Userspace.FirstPort != 0 {
		o.Ports = userspace.PortRange{First: c.Userspace.FirstPort, Last: c.Userspace.LastPort}
	}
	return o
}

func (m *userspaceMode) render(w *world, _ RenderOptions, out io.Writer) error {
	return m.compile(w.Plan(), w.Config).Render(out)
}

// diff compares the rules that lead to the proxy. Ports that the proxy could not have show as differences.
func (m *userspaceMode) diff(ctx context.Context, w *world, out io.Writer) (Outcome, error) {
	m.rulesHere(ctx)
	leads, _ := m.proxied(w.Plan(), w.Config).Leads()
	return m.inner.diff(ctx, w.with(leads), out)
}

func (m *userspaceMode) trace(ctx context.Context, w *world, q Question) (trace.Result, error) {
	m.rulesHere(ctx)
	r := m.proxied(w.Plan(), w.Config)
	leads, _ := r.Leads()
	result, err := m.inner.trace(ctx, w.with(leads), q)
	return r.Through(result, q.Protocol), err
}

func (m *userspaceMode) start(ctx context.Context, c config.Config, log *slog.Logger, loaded func()) (backend.Backend, error) {
	because := m.rulesHere(ctx)
	log.Info("rules lead to the proxy", "rules", m.inner.name(), "because", because)
	rules, err := m.inner.start(ctx, c, log, loaded)
	if err != nil {
		return nil, err
	}
	opts := userspaceOptions(c)
	var proxy userspace.Relay
	if proxy, opts.Before, err = m.relay.open(c.Userspace); err != nil {
		return nil, err
	}
	return userspace.New(opts, userspace.Deps{Rules: rules, Relay: proxy}), nil
}

func (m *userspaceMode) keeps() keeps { return m.rules().keeps() }

// leave ends the listeners when the rules of another mode stand. What the proxy relays goes on.
func (m *userspaceMode) leave() { m.relay.close() }

// cleanup finds nothing: the rules are another mode's, and listeners end with the process, or when another mode takes over.
func (*userspaceMode) cleanup(context.Context, leftovers) ([]string, error) { return nil, nil }
