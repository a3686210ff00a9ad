package app

import (
	"context"
	"io"

	"sluice/internal/config"
)

// DiffOptions are what the rules are compared with.
type DiffOptions struct {
	Dump string // a file of iptables-save; empty: this kernel
}

// Diff shows what would change in the kernel, or in a file. A difference is BadNews.
func Diff(ctx context.Context, in Input, o DiffOptions, out io.Writer) (Outcome, error) {
	if in.Config.Mode == config.ModePlan {
		return Good, wrongInputf("--mode plan: there is nothing in a kernel to compare a plan with; want nftables, iptables, ipvs or userspace")
	}
	if o.Dump == "" {
		return in.diffLive(ctx, out)
	}
	if in = in.settle(config.ModeIPTables); in.Config.Mode != config.ModeIPTables {
		return Good, wrongInputf("--mode %s: %s can only be what iptables-save wrote; want iptables", in.Config.Mode, o.Dump)
	}
	w, err := in.load()
	if err != nil {
		return Good, err
	}
	outcome, err := w.diffDump(o.Dump, out)
	return outcome.and(w.outcome), err
}

// diffLive compares with this kernel, for this machine as it is.
func (in Input) diffLive(ctx context.Context, out io.Writer) (Outcome, error) {
	if err := needRoot("diff without --dump"); err != nil {
		return Good, err
	}
	if in.Config.Mode == "" {
		mode, _ := choose(ctx)
		in = in.settle(mode)
	}
	w, err := in.load()
	if err != nil {
		return Good, err
	}
	if err := w.here(); err != nil {
		return Good, err
	}
	outcome, err := modeOf(in.Config, nil).diff(ctx, w, out)
	return outcome.and(w.outcome), err
}

// here makes the plan one for this machine as it is.
func (w *world) here() error {
	host, err := hostNow()
	if err == nil {
		w.SetHost(host)
	}
	return err
}
