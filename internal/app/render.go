package app

import (
	"fmt"
	"io"
	"strings"

	"sluice/internal/backend/iptables"
	"sluice/internal/config"
	"sluice/internal/model"
)

// RenderOptions are what is to be printed, and how.
type RenderOptions struct {
	Family string // "ipv4", "ipv6" or "" for the one that there are Services of
	Format Format
}

// Render prints what manifests make: the plan, or the rules of a mode.
func Render(in Input, o RenderOptions, out io.Writer) (Outcome, error) {
	family, all, err := parseFamily(o.Family)
	if err != nil {
		return Good, err
	}
	w, err := in.load()
	if err != nil {
		return Good, err
	}
	if in.Config.Mode == config.ModePlan {
		return w.outcome, show(out, o.Format, w.view())
	}
	if o.Format != Text {
		return Good, wrongInputf("-o %s: rules of mode %s are text; -o is for --mode plan", o.Format, in.Config.Mode)
	}
	if all {
		family = w.onlyFamily(in.Messages)
	}
	return w.outcome, w.compile(in).RenderFamily(out, family)
}

func (w *world) compile(in Input) *iptables.Ruleset { return iptables.Compile(w.Plan(), in.options()) }

// options are those of the iptables mode for a ruleset that is only looked at.
func (in Input) options() iptables.Options {
	o := iptables.DefaultOptions()
	o.MasqueradeBit = in.Config.MasqueradeBit
	return o
}

func parseFamily(s string) (f model.Family, all bool, err error) {
	switch strings.ToLower(s) {
	case "":
		return model.IPv4, true, nil
	case "ipv4":
		return model.IPv4, false, nil
	case "ipv6":
		return model.IPv6, false, nil
	}
	return 0, false, wrongInputf("--family %q: want ipv4 or ipv6", s)
}

// onlyFamily is IPv4, unless all Services are IPv6. One restore program takes one family, so the other is not printed;
// that it exists is told.
func (w *world) onlyFamily(messages io.Writer) model.Family {
	var has [2]bool
	for id := range w.Plan().Ports {
		has[id.Family] = true
	}
	if has[model.IPv4] && has[model.IPv6] {
		_, _ = fmt.Fprintln(messages, "these are the rules for IPv4; those for IPv6 come with --family ipv6")
	}
	if has[model.IPv6] && !has[model.IPv4] {
		return model.IPv6
	}
	return model.IPv4
}
