package app

import (
	"context"
	"io"

	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/plantrace"
)

// TraceOptions are which rules are walked, and how the answer is printed.
type TraceOptions struct {
	Dump   string // a file of iptables-save
	Live   bool   // the rules in this kernel
	Format Format
}

// Trace tells what happens to a packet.
func Trace(ctx context.Context, in Input, q Question, o TraceOptions, out io.Writer) (Outcome, error) {
	switch {
	case o.Live && o.Dump != "":
		return Good, wrongInputf("--live and --dump: want one of them")
	case o.Live:
		if err := needRoot("trace --live"); err != nil {
			return Good, err
		}
		in = in.settle(found(ctx))
	case o.Dump != "":
		in = in.settle(config.ModeIPTables)
	default:
		in = in.settle(config.ModeNFTables)
	}
	w, err := in.loadFor(o)
	if err != nil {
		return Good, err
	}
	r, err := w.trace(ctx, q, o)
	if err != nil {
		return Good, err
	}
	return w.outcome, show(out, o.Format, answer{r})
}

// loadFor reads manifests. Rules that exist need none: then they only tell of the node.
func (in Input) loadFor(o TraceOptions) (*world, error) {
	if len(in.Manifests) > 0 || o.Dump == "" && !o.Live {
		return in.load()
	}
	w := &world{Input: in, snapshot: model.NewSnapshot(), Planner: plan.NewPlanner(planConfig(in.Config))}
	w.SetHost(in.host(w.Plan()))
	return w, nil
}

func (w *world) trace(ctx context.Context, q Question, o TraceOptions) (trace.Result, error) {
	switch {
	case o.Live && w.Config.Mode == config.ModePlan:
		return trace.Result{}, wrongInputf("--mode plan: there is no plan in a kernel; want nftables, iptables, ipvs or userspace")
	case o.Live:
		if err := w.here(); err != nil {
			return trace.Result{}, err
		}
		return modeOf(w.Config, nil).trace(ctx, w, q)
	case o.Dump != "":
		return w.traceDump(o.Dump, q)
	case w.Config.Mode == config.ModePlan:
		return plantrace.Trace(w.Plan(), q.packet(&w.Plan().Node)), nil
	}
	return modeOf(w.Config, nil).compile(w.Plan(), w.Config).Trace(q.packet(&w.Plan().Node)), nil
}

// answer is a trace.Result to print.
type answer struct{ trace.Result }

func (a answer) text(w io.Writer) error { return a.WriteText(w) }
