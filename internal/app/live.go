package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/internal/backend/iptables"
	"sluice/internal/kernel/instance"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
)

// diffLive compares with this kernel, for this machine as it is.
func (w *world) diffLive(ctx context.Context, in Input, out io.Writer) (Outcome, error) {
	deps, _, err := w.here(ctx)
	if err != nil {
		return Good, err
	}
	opts, err := in.optionsHere()
	if err != nil {
		return Good, err
	}
	outcome := w.outcome
	for _, f := range model.Families {
		if deps.Tables[f] == nil {
			continue
		}
		saved, err := deps.Tables[f].Save(ctx)
		if err != nil {
			return Good, err
		}
		found, err := w.diffSaved(opts, f, saved, out)
		if err != nil {
			return Good, err
		}
		outcome = outcome.and(found)
	}
	return outcome, nil
}

// here makes the plan one for this machine as it is, and returns its tables and their variant.
func (w *world) here(ctx context.Context) (iptables.Deps, iptexec.Variant, error) {
	host, err := hostNow()
	if err != nil {
		return iptables.Deps{}, "", err
	}
	w.SetHost(host)
	deps, variant, _, err := system(ctx)
	return deps, variant, err
}

// traceLive walks the rules in this kernel.
func (w *world) traceLive(ctx context.Context, q Question) (trace.Result, error) {
	deps, variant, err := w.here(ctx)
	if err != nil {
		return trace.Result{}, err
	}
	tables := deps.Tables[model.FamilyOf(q.From)]
	if tables == nil {
		return trace.Result{}, fmt.Errorf("%s: %w", model.FamilyOf(q.From), iptables.ErrNoFamily)
	}
	saved, err := tables.Save(ctx)
	if err != nil {
		return trace.Result{}, err
	}
	routeLocalnet, err := routesLocalnet()
	if err != nil {
		return trace.Result{}, err
	}
	r, err := w.traceSaved(saved, q, iptwalk.Host{RouteLocalnet: routeLocalnet})
	if err != nil {
		return r, err
	}
	elsewhere, err := iptables.New(iptables.DefaultOptions(), deps).OtherVariant(ctx)
	if err != nil {
		elsewhere = []string{err.Error()}
	}
	for _, what := range elsewhere {
		r.Warnings = append(r.Warnings, fmt.Sprintf("this is what the rules of variant %s do; packets also pass those of the other: %s", variant, what))
	}
	return r, nil
}

// Cleanup removes all that is ours from this kernel, and prints what that was.
func Cleanup(ctx context.Context, out io.Writer) (err error) {
	claim, err := instance.Take()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claim.Close()) }()
	deps, variant, _, err := system(ctx)
	if err != nil {
		return err
	}
	all := deps.Others
	for f, t := range deps.Tables {
		if t != nil {
			all = append(all, iptables.Other{Name: fmt.Sprintf("%s (%s)", model.Family(f), variant), Tables: t})
		}
	}
	b := iptables.New(iptables.DefaultOptions(), iptables.Deps{Others: all, RouteLocalnet: setRouteLocalnet})
	found, err := b.OtherVariant(ctx)
	if err := errors.Join(err, b.Cleanup(ctx)); err != nil {
		return err
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "nothing to remove")
		return err
	}
	for _, f := range found {
		if _, err := fmt.Fprintln(out, "removed:", f); err != nil {
			return err
		}
	}
	return nil
}
