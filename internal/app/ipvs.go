package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"sluice/internal/backend"
	"sluice/internal/backend/ipvs"
	"sluice/internal/backend/ipvs/ipsets"
	"sluice/internal/backend/nftables"
	"sluice/internal/config"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
	"sluice/internal/trace/nftwalk"
)

// Both kinds of rules keep the marks that lead to virtual servers.
var _ = [...]ipvs.Adopter{(*nftables.Backend)(nil), (*ipsets.Backend)(nil)}

// ipvsMode has the kernel's virtual servers spread connections. Rules beside them do the rest: those of nf_tables, or of
// iptables with its sets where a kernel has no nf_tables.
type ipvsMode struct {
	kept keeps // by what was started
}

func (*ipvsMode) name() string { return config.ModeIPVS }

func (*ipvsMode) compile(p *plan.Plan, c config.Config) backend.Ruleset {
	return ipvs.Compile(p, ipvsOptions(c), nftables.New(deliveryOptions(c), nftables.Deps{}))
}

// ipvsOptions are those for virtual servers that are only looked at.
func ipvsOptions(c config.Config) ipvs.Options {
	return ipvs.Options{
		Scheduler: c.IPVS.Scheduler, ExcludeCIDRs: c.IPVS.ExcludeCIDRs, StrictARP: c.IPVS.StrictARP,
		TCPTimeout: c.IPVS.TCPTimeout, TCPFinTimeout: c.IPVS.TCPFinTimeout, UDPTimeout: c.IPVS.UDPTimeout,
	}
}

func ipvsOptionsHere(c config.Config) ipvs.Options {
	o := ipvsOptions(c)
	o.NoIPv6 = len(families()) < len(model.Families)
	return o
}

// deliveryOptions are those of rules of nf_tables that leave packets to virtual servers.
func deliveryOptions(c config.Config) nftables.Options {
	o := nftablesOptions(c)
	o.Deliver = nftables.DeliverIPVS
	return o
}

func deliveryOptionsHere(c config.Config) (o nftables.Options, err error) {
	o = deliveryOptions(c)
	o.TCPBeLiberal, err = beLiberal()
	return o, err
}

func (m *ipvsMode) render(w *world, _ RenderOptions, out io.Writer) error {
	return m.compile(w.Plan(), w.Config).Render(out)
}

// diff compares the virtual servers, and then the rules beside them.
func (m *ipvsMode) diff(ctx context.Context, w *world, out io.Writer) (outcome Outcome, err error) {
	rules, err := m.rules(ctx, w.Config, slog.New(slog.DiscardHandler), func() {})
	if err != nil {
		return Good, err
	}
	servers := ipvs.New(ipvsOptionsHere(w.Config), ipvs.Deps{Rules: rules})
	defer closeAll(&err, ipvsBackend{servers, rules})
	r := ipvs.Compile(w.Plan(), ipvsOptionsHere(w.Config), rules)
	lines, err := servers.Compare(ctx, r)
	if err != nil {
		return Good, err
	}
	var more []string
	switch rules := rules.(type) {
	case *nftables.Backend:
		more, err = rules.Compare(ctx, r.Rules().(*nftables.Ruleset))
	case *ipsets.Backend:
		more, err = rules.Compare(ctx, r.Rules().(*ipsets.Ruleset))
	}
	if err != nil {
		return Good, err
	}
	return printDifferences(out, append(lines, more...))
}

func closeAll(err *error, all ...io.Closer) {
	for _, c := range all {
		*err = errors.Join(*err, c.Close())
	}
}

// trace walks the kernel's rules, and asks its virtual servers. Where there is no table of ours, the rules are those of
// iptables, whoever wrote them.
func (m *ipvsMode) trace(ctx context.Context, w *world, q Question) (trace.Result, error) {
	r, walked, err := m.walk(ctx, w, q)
	if err != nil {
		return r, err
	}
	err = walked.meetOthers(ctx, model.FamilyOf(q.From), &r)
	return r, err
}

// walk tells which rules it walks.
func (*ipvsMode) walk(ctx context.Context, w *world, q Question) (r trace.Result, walked keeps, err error) {
	opts, err := deliveryOptionsHere(w.Config)
	if err != nil {
		return r, walked, err
	}
	servers := ipvs.New(ipvsOptionsHere(w.Config), ipvs.Deps{})
	rules := nftables.New(opts, nftables.Deps{})
	defer closeAll(&err, servers, rules)
	view, err := servers.Look(ctx)
	if err != nil {
		return r, walked, err
	}
	node, pkt := &w.Plan().Node, q.packet(&w.Plan().Node)
	host := nftwalk.Host{Addrs: node.Addresses, IPVS: &nftwalk.IPVS{Has: view.Has, Pick: view.Pick}}
	r, err = rules.TraceKernel(ctx, nftables.Compile(w.Plan(), opts), pkt, host)
	if !errors.Is(err, nftables.ErrNoTable) {
		return r, keeps{table: true}, err
	}
	deps, variant, err := ipsets.System(ctx, "")
	if err != nil {
		return r, walked, err
	}
	r, err = ipsets.New(ipsets.DefaultOptions(), deps).TraceKernel(ctx, pkt, iptwalk.Host{Addrs: node.Addresses, Balance: view.Pick})
	return r, keeps{chains: variant}, err
}

func (m *ipvsMode) start(ctx context.Context, c config.Config, log *slog.Logger, loaded func()) (backend.Backend, error) {
	rules, err := m.rules(ctx, c, log, loaded)
	if err != nil {
		return nil, err
	}
	b := ipvs.New(ipvsOptionsHere(c), ipvs.Deps{
		Rules: rules,
		Warn:  func(err error) { log.Warn("mode ipvs does without", "what", err) },
		Fallback: func(id plan.PortID, err error) {
			log.Warn("a Service has another scheduler than it asks for", "service port", id, "because", err)
		},
	})
	if err := b.Probe(ctx); err != nil {
		return nil, errors.Join(err, ipvsBackend{b, rules}.Close())
	}
	return ipvsBackend{b, rules}, nil
}

// ipvsBackend closes the rules beside the virtual servers, too.
type ipvsBackend struct {
	*ipvs.Backend
	rules backend.Backend
}

func (b ipvsBackend) Close() error { return errors.Join(b.Backend.Close(), closeBackend(b.rules)) }

// rules are those of nf_tables, or of iptables and its sets where the kernel has none.
func (m *ipvsMode) rules(ctx context.Context, c config.Config, log *slog.Logger, loaded func()) (backend.Backend, error) {
	lacking := probeNFTables(ctx)
	if lacking == nil {
		loaded()
		opts, err := deliveryOptionsHere(c)
		m.kept = keeps{servers: true, table: true}
		return nftables.New(opts, nftables.Deps{}), err
	}
	deps, variant, err := ipsets.System(ctx, "")
	if err != nil {
		return nil, errors.Join(lacking, err)
	}
	log.Info("the rules beside virtual servers are of iptables and its sets", "variant", string(variant), "because", lacking)
	loaded()
	opts := ipsets.DefaultOptions()
	opts.MasqueradeBit = c.MasqueradeBit
	opts.TCPBeLiberal, err = beLiberal()
	m.kept = keeps{servers: true, sets: true, chains: variant}
	return ipsets.New(opts, deps), err
}

func (m *ipvsMode) keeps() keeps { return m.kept }

// cleanup removes virtual servers and their device, unless connections are to end by themselves, and the rules of iptables
// beside them, whoever made them.
func (*ipvsMode) cleanup(ctx context.Context, l leftovers) (removed []string, err error) {
	if l.servers && l.sets || l.keepKubeProxy {
		return nil, nil
	}
	b := ipvs.New(ipvs.Options{ExcludeCIDRs: l.excluded}, ipvs.Deps{})
	defer closeAll(&err, b)
	view, err := b.Look(ctx)
	if err != nil {
		return nil, err
	}
	if !l.sets && (view.HasDevice() || !l.gently) {
		removed, err = cleanupSets(ctx)
	}
	if l.servers || l.gently {
		return removed, err // retire sees to the rest
	}
	more, serversErr := b.CleanupServers(ctx)
	return append(removed, more...), errors.Join(err, serversErr)
}

// cleanupSets removes the rules of iptables beside virtual servers, and their sets. Where the programs or the kernel's sets
// are missing there is nothing by which anybody could have made them.
func cleanupSets(ctx context.Context) ([]string, error) {
	deps, _, err := ipsets.System(ctx, "")
	if errors.Is(err, iptexec.ErrNotInstalled) || errors.Is(err, ipsets.ErrNoSets) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := ipsets.New(ipsets.DefaultOptions(), deps)
	found, err := b.Leftovers(ctx)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found, b.Cleanup(ctx)
}

// hasVirtualServers reports whether there is the device of mode ipvs.
func hasVirtualServers(ctx context.Context) bool {
	b := ipvs.New(ipvs.Options{}, ipvs.Deps{})
	view, err := b.Look(ctx)
	return errors.Join(err, b.Close()) == nil && view.HasDevice()
}
