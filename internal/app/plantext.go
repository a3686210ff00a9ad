package app

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sluice/internal/model"
)

// text prints a plan as tables.
func (v *planView) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) {
		_, _ = fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")) // Flush tells of errors
	}
	line("Node " + cmp.Or(v.Node.Name, "(no name)"))
	line("  addresses", list(v.Node.Addresses))
	line("  pods are clients", list(v.Node.Pods))
	line("  node ports at", list(v.Node.NodePorts))
	if len(v.Node.ServiceCIDRs) > 0 {
		line("  Services in", list(v.Node.ServiceCIDRs))
	}
	for _, p := range v.Services {
		line()
		p.text(line)
	}
	if len(v.Skipped) > 0 {
		line()
		line("Not proxied")
	}
	for _, s := range v.Skipped {
		line("  "+s.Service, s.Because)
	}
	if len(v.Problems) > 0 {
		line()
		line("Problems")
	}
	for _, p := range v.Problems {
		line("  " + p)
	}
	return w.Flush()
}

func (p *portView) text(line func(...string)) {
	line(p.title())
	for _, f := range p.Frontends {
		held := ""
		if f.HeldBy != "" {
			held = "held by Service " + f.HeldBy
		}
		line("  frontend", f.Address, f.Kind, held)
	}
	for _, r := range p.Routes {
		line("  to "+r.To, r.Client, r.Action, list(r.Endpoints), masquerade(r))
	}
	for _, e := range p.Endpoints {
		line("  endpoint", e.Address, cmp.Or(e.Node, "-"), "cluster: "+e.Cluster, "local: "+e.Local, e.weight())
	}
	if len(p.Endpoints) == 0 {
		line("  no endpoints")
	}
}

func (e *endpointView) weight() string {
	if e.Weight == 0 {
		return ""
	}
	return fmt.Sprintf("weight %d", e.Weight)
}

func (p *portView) title() string {
	words := []string{"Service " + p.Service}
	if p.Port != "" {
		words[0] += ":" + p.Port
	}
	words[0] += " " + p.Protocol + " " + p.Family
	if p.Balancing != model.BalanceDefault.String() {
		words = append(words, p.Balancing)
	}
	if p.Affinity != "" {
		words = append(words, "a client keeps its endpoint for "+p.Affinity)
	}
	if len(p.Sources) > 0 {
		words = append(words, "load balancer addresses answer "+list(p.Sources))
	}
	if p.Health != "" {
		words = append(words, "health check "+p.Health)
	}
	return strings.Join(words, ", ")
}

func masquerade(r routeView) string {
	switch {
	case r.Action != "forward":
		return ""
	case r.Masquerade:
		return "source becomes the node's"
	}
	return "source stays"
}

// listed is how many items a cell of a table shows.
const listed = 6

func list(items []string) string {
	switch n := len(items); {
	case n == 0:
		return "-"
	case n > listed:
		return fmt.Sprintf("%s and %d more", strings.Join(items[:listed], " "), n-listed)
	}
	return strings.Join(items, " ")
}
