package app

import (
	"io"

	"sluice/internal/config"
)

// RenderOptions are what is to be printed, and how.
type RenderOptions struct {
	Family string // "ipv4", "ipv6" or "" for the one that there are Services of; of mode iptables
	Format Format
}

// Render prints what manifests make: the plan, or the rules of a mode.
func Render(in Input, o RenderOptions, out io.Writer) (Outcome, error) {
	if o.Family != "" {
		in = in.settle(config.ModeIPTables) // no other mode asks for one
	}
	in = in.settle(config.ModeNFTables)
	if o.Format != Text && in.Config.Mode != config.ModePlan {
		return Good, wrongInputf("-o %s: rules of mode %s are text; -o is for --mode plan", o.Format, in.Config.Mode)
	}
	if o.Family != "" && in.Config.Mode != config.ModeIPTables {
		return Good, wrongInputf("--family %s: mode %s is for both families at once; --family is for --mode iptables", o.Family, in.Config.Mode)
	}
	w, err := in.load()
	if err != nil {
		return Good, err
	}
	if in.Config.Mode == config.ModePlan {
		return w.outcome, show(out, o.Format, w.view())
	}
	return w.outcome, modeOf(in.Config, nil).render(w, o, out)
}
