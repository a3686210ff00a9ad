package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/config"
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
	// cleanup removes all that is of this mode from this kernel, whoever made it, and tells what that was. After start it
	// spares what the backend keeps.
	cleanup(ctx context.Context, l leftovers) (removed []string, err error)
}

// leftovers say how to remove what a mode leaves.
type leftovers struct {
	routeLocalnet func(on bool) error
	keepKubeProxy bool // spare what kube-proxy may be using
}

// modes are all that there are, but for the plan.
func modes() []mode { return []mode{&nftablesMode{}, &iptablesMode{}} }

// modeOf finds the mode that a configuration names.
func modeOf(c config.Config) mode {
	if c.Mode == config.ModeNFTables {
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

// found is the mode whose rules this kernel has: iptables, whoever wrote them, unless there is a table of mode nftables.
func found(ctx context.Context) (mode string) {
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
