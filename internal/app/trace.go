package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"sluice/internal/backend/iptables/rules"
	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
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
	if o.Live && o.Dump != "" {
		return Good, wrongInputf("--live and --dump: want one of them")
	}
	w, err := in.loadFor(o)
	if err != nil {
		return Good, err
	}
	r, err := w.trace(ctx, in, q, o)
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
	w := &world{snapshot: model.NewSnapshot(), Planner: plan.NewPlanner(in.planConfig())}
	w.SetHost(in.host(w.Plan()))
	return w, nil
}

func (w *world) trace(ctx context.Context, in Input, q Question, o TraceOptions) (trace.Result, error) {
	switch {
	case o.Live:
		return w.traceLive(ctx, q)
	case o.Dump != "":
		text, err := os.ReadFile(o.Dump)
		if err != nil {
			return trace.Result{}, WrongInput(err)
		}
		r, err := w.traceSaved(text, q, iptwalk.Host{})
		if err != nil {
			err = wrongInputf("%s: %w", o.Dump, err)
		}
		return r, err
	case in.Config.Mode == config.ModePlan:
		return plantrace.Trace(w.Plan(), q.packet(&w.Plan().Node)), nil
	}
	return w.compile(in).Trace(q.packet(&w.Plan().Node)), nil
}

// traceSaved walks rules as iptables-save printed them.
func (w *world) traceSaved(text []byte, q Question, host iptwalk.Host) (trace.Result, error) {
	if f, ok := savedFamily(text); ok && f != model.FamilyOf(q.From) {
		return trace.Result{}, fmt.Errorf("these are the rules for %s, but the packet is %s", f, model.FamilyOf(q.From))
	}
	rs, err := rules.Parse(bytes.NewReader(text))
	if err != nil {
		return trace.Result{}, err
	}
	host.Addrs = append(host.Addrs, w.Plan().Node.Addresses...)
	return iptwalk.Walk(rs, q.packet(&w.Plan().Node), host), nil
}

// savedFamily is the family of rules by the comment that iptables-save begins with.
func savedFamily(text []byte) (f model.Family, known bool) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case bytes.Contains(first, []byte("ip6tables-save")):
		return model.IPv6, true
	case bytes.Contains(first, []byte("iptables-save")):
		return model.IPv4, true
	}
	return 0, false
}

// answer is a trace.Result to print.
type answer struct{ trace.Result }

func (a answer) text(w io.Writer) error { return a.WriteText(w) }
