package flow

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Flow is a packet and what must become of it.
type Flow struct {
	// Client is the kind of client in a test's own words: pod, node or outside.
	Client string
	// On names the node that it passes; empty is the one under test.
	On     string
	Packet plan.Packet
	Want   Outcome
}

// Outcome is what becomes of a packet.
type Outcome struct {
	Action  plan.Action
	Targets []Target // for plan.Forward, sorted by address
}

// NewOutcome sorts the targets.
func NewOutcome(a plan.Action, targets ...Target) Outcome {
	slices.SortFunc(targets, func(a, b Target) int { return a.AddrPort.Compare(b.AddrPort) })
	return Outcome{a, targets}
}

// Equal reports whether two outcomes are the same, as far as shares are known.
func (o Outcome) Equal(other Outcome) bool {
	return o.Action == other.Action && slices.EqualFunc(o.Targets, other.Targets, Target.equal)
}

// String is the outcome as a test writes it: "forward 10.0.0.1:80 10.0.0.2:80 masquerade=no".
func (o Outcome) String() string {
	words := []string{o.Action.String()}
	masqueraded := 0
	for _, t := range o.Targets {
		words = append(words, t.text(len(o.Targets)))
		if t.Masquerade {
			masqueraded++
		}
	}
	switch {
	case len(o.Targets) == 0:
	case masqueraded == 0:
		words = append(words, "masquerade=no")
	case masqueraded == len(o.Targets):
		words = append(words, "masquerade=yes")
	default:
		words = append(words, "masquerade="+o.masqueraded())
	}
	return strings.Join(words, " ")
}

// masqueraded names those endpoints that see the node's address.
func (o Outcome) masqueraded() string {
	var names []string
	for _, t := range o.Targets {
		if t.Masquerade {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, ",")
}

// String is the flow as a test writes it.
func (f Flow) String() string {
	who := f.Client + " " + f.Packet.From.String()
	if f.Packet.Interface != "" {
		who += " by " + f.Packet.Interface
	}
	if f.On != "" {
		who += " on " + f.On
	}
	return fmt.Sprintf("%s -> %s/%s: %s", who, f.Packet.To, f.Packet.Protocol, f.Want)
}

// ParseAll reads a flow from each line; lines that are empty or begin with # are none.
func ParseAll(text string) (all []Flow, err error) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, err := Parse(line)
		if err != nil {
			return nil, fmt.Errorf("flow in line %d: %q: %w", i+1, line, err)
		}
		all = append(all, f)
	}
	return all, nil
}

// Parse reads one line:
//
//	CLIENT ADDRESS [by INTERFACE] [on NODE] -> ADDRESS:PORT/PROTOCOL: ACTION [ENDPOINT[=SHARE%]… masquerade=yes|no|ENDPOINT,…]
//
// CLIENT is pod, node (a process on it) or outside; ACTION is forward, reject, drop or unhandled. Endpoints have equal
// shares unless they say otherwise.
func Parse(line string) (f Flow, err error) {
	who, rest, ok := strings.Cut(line, " -> ")
	if !ok {
		return f, fmt.Errorf("there is no ->")
	}
	to, want, ok := strings.Cut(rest, ": ")
	if !ok {
		return f, fmt.Errorf("there is no \": \" before the action")
	}
	if err := f.parseClient(strings.Fields(who)); err != nil {
		return f, err
	}
	if err := f.parseTo(to); err != nil {
		return f, err
	}
	f.Want, err = parseOutcome(strings.Fields(want))
	return f, err
}

func (f *Flow) parseClient(words []string) (err error) {
	if len(words) < 2 || len(words)%2 != 0 {
		return fmt.Errorf("client: want CLIENT ADDRESS [by INTERFACE] [on NODE]")
	}
	f.Client = words[0]
	switch f.Client {
	case "pod", "outside":
	case "node":
		f.Packet.Via = plan.ViaLocal
	default:
		return fmt.Errorf("client %q: want pod, node or outside", f.Client)
	}
	if f.Packet.From, err = netip.ParseAddr(words[1]); err != nil {
		return err
	}
	for i := 2; i < len(words); i += 2 {
		switch words[i] {
		case "by":
			f.Packet.Interface = words[i+1]
		case "on":
			f.On = words[i+1]
		default:
			return fmt.Errorf("client: %q: want by or on", words[i])
		}
	}
	return nil
}

func (f *Flow) parseTo(text string) (err error) {
	to, protocol, _ := strings.Cut(text, "/")
	if f.Packet.To, err = netip.ParseAddrPort(to); err != nil {
		return err
	}
	f.Packet.Protocol, err = model.ParseProtocol(protocol)
	return err
}

func parseOutcome(words []string) (o Outcome, err error) {
	if len(words) == 0 {
		return o, fmt.Errorf("there is no action")
	}
	if o.Action, err = parseAction(words[0]); err != nil {
		return o, err
	}
	words = words[1:]
	if o.Action != plan.Forward {
		if len(words) > 0 {
			return o, fmt.Errorf("%s has no endpoints", o.Action)
		}
		return o, nil
	}
	if len(words) < 2 {
		return o, fmt.Errorf("forward: want endpoints and masquerade=")
	}
	masquerade, ok := strings.CutPrefix(words[len(words)-1], "masquerade=")
	if !ok {
		return o, fmt.Errorf("forward: want masquerade= at the end")
	}
	words = words[:len(words)-1]
	for _, w := range words {
		t, err := parseTarget(w, len(words))
		if err != nil {
			return o, err
		}
		t.Masquerade = masquerade == "yes" || slices.Contains(strings.Split(masquerade, ","), t.String())
		o.Targets = append(o.Targets, t)
	}
	return NewOutcome(o.Action, o.Targets...), nil
}

func parseAction(word string) (plan.Action, error) {
	for a := plan.Unhandled; a <= plan.Drop; a++ {
		if a.String() == word {
			return a, nil
		}
	}
	return 0, fmt.Errorf("action %q: want forward, reject, drop or unhandled", word)
}
