package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"sluice/internal/backend/iptables"
	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
)

func (*iptablesMode) diff(ctx context.Context, w *world, out io.Writer) (Outcome, error) {
	deps, _, _, err := iptablesTables(ctx)
	if err != nil {
		return Good, err
	}
	opts, err := iptablesOptionsHere(w.Config)
	if err != nil {
		return Good, err
	}
	outcome := Good
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

// diffDump compares with a file that iptables-save or ip6tables-save wrote.
func (w *world) diffDump(path string, out io.Writer) (Outcome, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Good, WrongInput(err)
	}
	f, _ := savedFamily(text)
	outcome, err := w.diffSaved(iptablesOptions(w.Config), f, text, out)
	if err != nil {
		return Good, wrongInputf("%s: %w", path, err)
	}
	return outcome, nil
}

// diffSaved compares with what iptables-save printed of one family.
func (w *world) diffSaved(opts iptables.Options, f model.Family, saved []byte, out io.Writer) (Outcome, error) {
	changes, err := iptables.Compile(w.Plan(), opts).Compare(f, saved)
	if err != nil || len(changes) == 0 {
		return Good, err
	}
	for _, c := range changes {
		if _, err := io.WriteString(out, changeText(f, c)); err != nil {
			return Good, err
		}
	}
	return BadNews, nil
}

// changeText is a chain's change as diff -u prints it.
func changeText(f model.Family, c iptables.ChainChange) string {
	name := fmt.Sprintf("%s %s %s", f, c.Table, c.Chain)
	old, now := name, name
	if c.Made {
		old = "no " + name
	}
	if c.Removed {
		now = "no " + name
	}
	text := diff.Diff(old, join(c.Old), now, join(c.New))
	if len(text) == 0 { // an empty chain comes or goes
		return fmt.Sprintf("--- %s\n+++ %s\n", old, now)
	}
	_, text, _ = bytes.Cut(text, []byte("\n")) // a line that names both once more
	return string(text)
}

func join(lines []string) []byte {
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func (*iptablesMode) trace(ctx context.Context, w *world, q Question) (trace.Result, error) {
	deps, variant, _, err := iptablesTables(ctx)
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
	err = keeps{chains: variant}.meetOthers(ctx, model.FamilyOf(q.From), &r)
	return r, err
}

// traceDump walks the rules of a file that iptables-save or ip6tables-save wrote.
func (w *world) traceDump(path string, q Question) (trace.Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return trace.Result{}, WrongInput(err)
	}
	r, err := w.traceSaved(text, q, iptwalk.Host{})
	if err != nil {
		err = wrongInputf("%s: %w", path, err)
	}
	return r, err
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
