package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"sluice/internal/backend"
	"sluice/internal/backend/userspace"
	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/status"
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
	return m.proxiedAt(p, c, userspaceOptions(c))
}

func (m *userspaceMode) proxiedAt(p *plan.Plan, c config.Config, opts userspace.Options) *userspace.Ruleset {
	return userspace.Compile(p, opts, func(p *plan.Plan) backend.Ruleset { return m.rules().compile(p, c) })
}

// proxiedHere has the ports that the daemon has, if one runs: a port that somebody else had when it started is another
// one's now.
func (m *userspaceMode) proxiedHere(w *world) *userspace.Ruleset {
	opts := userspaceOptions(w.Config)
	if r, err := askDaemon(); err == nil {
		opts.Before = portsOfProxy(r)
	}
	return m.proxiedAt(w.Plan(), w.Config, opts)
}

// portsOfProxy are the ports of lists in a daemon's report.
func portsOfProxy(r status.Report) map[relay.Key]uint16 {
	ports := map[relay.Key]uint16{}
	for _, p := range r.Ports {
		id := portID(p)
		for i, list := range []plan.List{plan.ListCluster, plan.ListLocal} {
			if p.Proxy[i] != 0 {
				ports[relay.Key{Port: id, List: list}] = p.Proxy[i]
			}
		}
	}
	return ports
}

// portID is whose status it is.
func portID(p status.Port) plan.PortID {
	id := plan.PortID{Service: model.Name{Namespace: p.Namespace, Name: p.Name}, Port: p.Port}
	id.Protocol, _ = model.ParseProtocol(p.Protocol) // a daemon writes none that it does not know
	if p.Family == model.IPv6.String() {
		id.Family = model.IPv6
	}
	return id
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

// diff compares the rules that lead to the proxy.
func (m *userspaceMode) diff(ctx context.Context, w *world, out io.Writer) (Outcome, error) {
	m.rulesHere(ctx)
	leads, _ := m.proxiedHere(w).Leads()
	return m.inner.diff(ctx, w.with(leads), out)
}

func (m *userspaceMode) trace(ctx context.Context, w *world, q Question) (trace.Result, error) {
	m.rulesHere(ctx)
	r := m.proxiedHere(w)
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
	if proxy, opts.Before, err = m.relay.open(c.Userspace, redirected); err != nil {
		return nil, errors.Join(err, closeBackend(rules))
	}
	return userspace.New(opts, userspace.Deps{Rules: rules, Relay: proxy}), nil
}

func (m *userspaceMode) keeps() keeps { return m.rules().keeps() }

// leave ends the listeners when the rules of another mode stand. What the proxy relays goes on.
func (m *userspaceMode) leave() { m.relay.closeSoon() }

// cleanup finds nothing: the rules are another mode's, and listeners end with the process, or when another mode takes over.
func (*userspaceMode) cleanup(context.Context, leftovers) ([]string, error) { return nil, nil }
