package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/config"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// mode is what the verbs ask of one way to do the work. Each is a file of its own here, named after it.
type mode interface {
	// name is the value of --mode.
	name() string
	// compile makes rules that are only looked at.
	compile(*plan.Plan, config.Config) backend.Ruleset
	// render prints the rules of w.
	render(w *world, o RenderOptions, out io.Writer) error
	// diff compares the rules of w with those in this kernel, and prints what differs.
	diff(ctx context.Context, w *world, out io.Writer) (Outcome, error)
	// trace walks the rules in this kernel.
	trace(ctx context.Context, w *world, q Question) (trace.Result, error)
	// start makes the backend that keeps this kernel up to date, and tells what it found. It calls loaded when connection
	// tracking is in the kernel, before it looks how that is set.
	start(ctx context.Context, c config.Config, log *slog.Logger, loaded func()) (backend.Backend, error)
	// keeps is what the backend that was started has in the kernel.
	keeps() keeps
	// cleanup removes all that is of this mode from this kernel, whoever made it, but for what is kept, and tells what that
	// was.
	cleanup(ctx context.Context, l leftovers) (removed []string, err error)
}

// keeps is what a running mode has in the kernel. Modes share the ways to write rules, so that what one mode calls a
// leftover may be what another works with.
type keeps struct {
	table   bool            // table inet sluice
	chains  iptexec.Variant // the chains of iptables in this variant; empty: none
	servers bool            // the virtual servers of ipvs, and their device
	sets    bool            // ipsets, of the rules beside those
}

// unguarded reports whether the rules refuse nothing that is for no Service: those of iptables but beside virtual servers.
func (k keeps) unguarded() bool { return k.chains != "" && !k.sets }

// leftovers say how to remove what a mode leaves.
type leftovers struct {
	keeps
	routeLocalnet func(on bool) error
	keepKubeProxy bool // spare what kube-proxy may be using
	gently        bool // have connections end by themselves
	// excluded are ranges of addresses where virtual servers stay that may be others'.
	excluded []netip.Prefix
}

// modes are all that there are, but for the plan.
func modes() []mode { return []mode{&nftablesMode{}, &iptablesMode{}, &ipvsMode{}, &userspaceMode{}} }

// modeOf finds the mode that a configuration names, which works with the proxy of a daemon if it starts.
func modeOf(c config.Config, proxy *relayOfDaemon) mode {
	switch c.Mode {
	case config.ModeIPVS:
		return &ipvsMode{}
	case config.ModeUserspace:
		return &userspaceMode{relay: proxy}
	default:
		return rulesOf(c.Mode)
	}
}

// rulesOf is a mode of rules alone.
func rulesOf(name string) mode {
	if name == config.ModeNFTables {
		return &nftablesMode{}
	}
	return &iptablesMode{}
}

// choose is the best mode that this kernel can do, and why it is that one.
func choose(ctx context.Context) (mode, because string) {
	if err := probeNFTables(ctx); err != nil {
		return config.ModeIPTables, err.Error()
	}
	return config.ModeNFTables, "this kernel can do it"
}

// found is the mode whose rules this kernel has: that of the daemon, if one runs. Else it is ipvs where its device is, and
// iptables, whoever wrote the rules, unless there is a table of mode nftables.
func found(ctx context.Context) (mode string) {
	if r, err := askDaemon(); err == nil {
		return r.Mode
	}
	if hasVirtualServers(ctx) {
		return config.ModeIPVS
	}
	mode = config.ModeIPTables
	_ = withNFTables(nftables.Deps{}, func(b *nftables.Backend) error {
		if has, err := b.HasTable(ctx); err == nil && has {
			mode = config.ModeNFTables
		}
		return nil
	}) // a kernel without nf_tables has none
	return mode
}

// settle chooses a mode where none is given.
func (in Input) settle(mode string) Input {
	if in.Config.Mode != "" {
		return in
	}
	c, inVain := in.Config.For(mode)
	for _, text := range inVain {
		_, _ = fmt.Fprintln(in.Messages, "warning:", text) // there is nobody left to tell
	}
	in.Config, in.Warnings = c, slices.Concat(in.Warnings, inVain)
	return in
}
