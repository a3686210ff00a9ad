package iptwalk

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/trace"
)

// maxSteps is more than anyone reads.
const maxSteps = 500

func (w *walker) step(path []string, rule, says string) {
	switch {
	case w.muted > 0 || len(w.steps) > maxSteps:
		return
	case len(w.steps) == maxSteps:
		rule, says = "", "… and more: only so many steps are told"
	}
	w.steps = append(w.steps, trace.Step{At: w.table + " " + strings.Join(path, " → "), Rule: rule, Says: says})
}

// tellRule makes a step of a rule that took some of the flow.
func (w *walker) tellRule(r *rule, path []string, taken, rest flow, doubt string) {
	if w.muted > 0 || len(w.steps) > maxSteps {
		return
	}
	says := w.ofAll(taken)
	switch {
	case doubt != "":
		says = "? " + doubt + " is not known here, so both ways are followed; if it matches: "
	case r.divides() && !rest.Empty():
		says = trace.Percent(taken.Total()/(taken.Total()+rest.Total())) + " of what gets here: "
	}
	if comment := r.parsed.Comment(); comment != "" {
		says += comment + ": "
	}
	w.step(path, string(r.text), says+action(r.parsed))
}

// ofAll says how many of all packets a flow is, unless it is all of them.
func (w *walker) ofAll(f flow) string {
	if share := f.Total(); share < 1-1e-9 {
		return trace.Percent(share) + " of all: "
	}
	return ""
}

// divides reports whether the rule picks packets by chance or count.
func (r *rule) divides() bool {
	return slices.ContainsFunc(r.parsed.Matches, func(m rules.Match) bool { return m.Module == "statistic" })
}

// action is what a target does, in words.
func action(p rules.Parsed) string {
	option := func(name string) string {
		o, _ := rules.Find(p.TargetOptions, name)
		return o.Value()
	}
	switch p.Target {
	case "":
		return "counted, and on to the next rule"
	case "ACCEPT":
		return "accepted"
	case "DROP":
		return "dropped"
	case "REJECT":
		if with := option("reject-with"); with != "" {
			return "refused with " + with
		}
		return "refused"
	case "RETURN":
		return "back to the calling chain"
	case "DNAT":
		return "the destination becomes " + option("to-destination")
	case "REDIRECT":
		return "the destination becomes port " + option("to-ports") + " of this node"
	case "SNAT":
		return "the source becomes " + option("to-source")
	case "MASQUERADE":
		return "the source becomes an address of this node"
	case "MARK", "CONNMARK":
		return markAction(p)
	case "SET":
		return "asks or changes a set, which may give the packet a mark, and on to the next rule"
	}
	return otherAction(p)
}

func otherAction(p rules.Parsed) string {
	switch {
	case slices.Contains(passing, p.Target):
		return p.Target + ", and on to the next rule"
	case slices.Contains(foreign, p.Target):
		return "unknown target " + p.Target + ", assumed to continue"
	case p.Goto:
		return "on to chain " + p.Target + ", for good"
	}
	return "on to chain " + p.Target
}

func markAction(p rules.Parsed) string {
	whose := "the packet's mark"
	if p.Target == "CONNMARK" {
		whose = "the connection's mark"
	}
	if len(p.TargetOptions) == 1 {
		switch m, ok := rules.SetMark(p.TargetOptions[0]); {
		case !ok:
		case m.Mask == m.Value:
			return fmt.Sprintf("sets %#x in %s", m.Value, whose)
		case m.Mask == 0:
			return fmt.Sprintf("flips %#x in %s", m.Value, whose)
		case m.Value == 0:
			return fmt.Sprintf("clears %#x in %s", m.Mask, whose)
		default:
			return fmt.Sprintf("sets %s to %s", whose, m)
		}
	}
	return "changes " + whose
}

// shareSummary keeps the steps of a chain with many endpoints short: it tells the first rules that divide the packets,
// and then how many there were.
type shareSummary struct {
	rules  int
	hidden float64 // share of all packets taken by rules that were not told
}

// told is how many such rules of a chain are told one by one.
const told = 10

// count takes in one rule that took some of the flow and reports whether it is not to be told. The last rule of a
// series takes the rest without a match of its own.
func (s *shareSummary) count(r *rule, taken, rest flow) bool {
	last := s.rules > 0 && rest.Empty() && r.parsed.Target != "RETURN"
	if !r.divides() && !last {
		return false
	}
	s.rules++
	if s.rules <= told {
		return false
	}
	s.hidden += taken.Total()
	return true
}

func (s *shareSummary) tell(w *walker, path []string) {
	if more := s.rules - told; more > 0 {
		w.step(path, "", fmt.Sprintf("… and %d more rules like these, for %s of all", more, trace.Percent(s.hidden)))
	}
}
