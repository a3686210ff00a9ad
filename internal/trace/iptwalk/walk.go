package iptwalk

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/weigh"
)

// Walk tells what the rules, of the packet's family, do to the first packet of a new connection.
func Walk(rs *rules.Ruleset, pkt plan.Packet, host Host) trace.Result {
	if pkt.Via == plan.ViaForward && pkt.To.Addr().IsLoopback() && !(host.RouteLocalnet && pkt.To.Addr().Is4()) {
		return trace.Martian()
	}
	w := newWalker(rs, pkt, host)
	w.doubtful = 0.5
	w.run()
	r := w.result()
	if !w.guessed {
		return r
	}
	plain := newWalker(rs, pkt, host)
	plain.run()
	return w.withDoubt(r, plain.result())
}

// maxTests bounds the work on rulesets that multiply the ways through them.
const maxTests = 10_000_000

type walker struct {
	rules *rules.Ruleset
	pkt   plan.Packet
	host  Host
	// doubtful is the share of packets that a match which is not known lets pass.
	doubtful float64

	compiled map[*rules.Chain][]*rule
	tests    int // asked so far

	// where the packet is
	hook, table string
	in          string // name of the interface it came in by

	// the ends of packets: within the table that is walked, and for good
	accepted          flow
	dropped, rejected float64
	left              flow

	hooks          trace.Hooks // that some of the flow came by
	steps          []trace.Step
	muted          int // while above zero no steps are told
	warnings       []string
	fault          string
	guessed        bool // a match or target that is not known was met
	assumed        bool // what a target or rule does is not known, so nothing tells whether it matters
	askedInterface bool
	askedHistory   bool
}

func newWalker(rs *rules.Ruleset, pkt plan.Packet, host Host) *walker {
	return &walker{rules: rs, pkt: pkt, host: host, compiled: map[*rules.Chain][]*rule{}}
}

// run takes the packet from where it begins to all its ends.
func (w *walker) run() {
	f := weigh.Whole(state{src: w.pkt.From, dst: w.pkt.To})
	if w.pkt.Via == plan.ViaLocal {
		w.runLocal(f)
		return
	}
	w.in = w.pkt.Interface
	f = w.walkHook("PREROUTING", f, "raw", "mangle", "nat")
	here, on := f.Divide(w.isHere)
	here = w.walkHook("INPUT", here, "mangle", "filter", "security")
	sent, stay, here := w.balance(here)
	here.AddAll(stay)
	w.left.AddAll(w.walkHook("INPUT", here, "nat"))
	on = w.walkHook("FORWARD", on, "mangle", "filter", "security")
	w.in = ""
	on.AddAll(w.walkHook("OUTPUT", sent, "raw", "mangle", "filter", "security")) // ipvs sends as the node does
	w.left.AddAll(w.walkHook("POSTROUTING", on, "mangle", "nat"))
}

// runLocal is the way of a packet from a process. One that is for the node itself leaves and comes in again, by lo; its
// connection is known by then, so that nat is not asked twice. Nor does ipvs pick twice.
func (w *walker) runLocal(f flow) {
	f = w.walkHook("OUTPUT", f, "raw", "mangle", "nat")
	sent, stay, f := w.balance(f)
	f.AddAll(stay)
	f.AddAll(w.walkHook("OUTPUT", sent, "raw", "mangle"))
	f = w.walkHook("OUTPUT", f, "filter", "security")
	f = w.walkHook("POSTROUTING", f, "mangle", "nat")
	here, gone := f.Divide(w.isHere)
	w.left.AddAll(gone)
	w.in = "lo"
	here = w.walkHook("PREROUTING", here, "raw", "mangle")
	w.left.AddAll(w.walkHook("INPUT", here, "mangle", "filter", "security"))
}

func (w *walker) isHere(s state) bool { return w.host.local(s.dst.Addr()) }

// leaving reports whether the packet has an interface to go out by.
func (w *walker) leaving() bool { return w.hook != "PREROUTING" && w.hook != "INPUT" }

// noInterface reports whether the packet came in by an interface whose name was not given.
func (w *walker) noInterface() bool {
	return w.pkt.Via == plan.ViaForward && w.in == "" && w.hook != "POSTROUTING" && w.hook != "OUTPUT"
}

// walkHook goes through the tables of a hook, and returns what they let pass.
func (w *walker) walkHook(hook string, f flow, tables ...string) flow {
	w.hook = hook
	if !f.Empty() {
		w.hooks.Add(strings.ToLower(hook))
	}
	for _, table := range tables {
		c := w.rules.Table(table).Chain(hook)
		if c == nil || f.Empty() {
			continue
		}
		w.table = table
		f = w.walkTable(c, f)
	}
	return f
}

func (w *walker) walkTable(c *rules.Chain, f flow) flow {
	var passed flow
	if w.table == "nat" { // asks only about connections
		passed, f = f.Divide(func(s state) bool { return s.untracked })
	}
	w.accepted = flow{}
	end := w.walkChain(c, f, []string{c.Name})
	if c.Policy == "DROP" && !end.Empty() {
		w.dropped += end.Total()
		w.step([]string{c.Name}, "policy DROP", w.ofAll(end)+"no rule accepted it, so the chain's policy drops it")
		end = flow{}
	}
	passed.AddAll(w.accepted)
	passed.AddAll(end)
	return passed
}

// walkChain passes the flow through a chain and returns what leaves at its end or by RETURN.
func (w *walker) walkChain(c *rules.Chain, f flow, path []string) (left flow) {
	shares := shareSummary{}
	for i := 0; i < len(c.Rules) && !f.Empty(); i++ {
		r := w.rule(c, i)
		taken, rest, doubt := w.match(r, f)
		if taken.Empty() {
			continue
		}
		quiet := shares.count(r, taken, rest)
		if quiet {
			w.muted++
		}
		w.tellRule(r, path, taken, rest, doubt)
		to := w.apply(r, taken, path)
		if quiet {
			w.muted--
		}
		f = rest
		f.AddAll(to.next)
		left.AddAll(to.returned)
	}
	shares.tell(w, path)
	left.AddAll(f)
	return left
}

// match divides the flow by what the rule's tests say.
func (w *walker) match(r *rule, f flow) (taken, rest flow, doubt string) {
	answers := make([]float64, 0, 8)
	some := false
	for _, p := range f.Parts() {
		a, d := w.ask(r, p.State)
		if d != "" {
			doubt = d
		}
		some = some || a > 0
		answers = append(answers, a)
	}
	if !some {
		return flow{}, f, doubt
	}
	for i, p := range f.Parts() {
		taken.Add(p.State, p.Share*answers[i])
		rest.Add(p.State, p.Share*(1-answers[i]))
	}
	return taken, rest, doubt
}

func (w *walker) ask(r *rule, s state) (share float64, doubt string) {
	w.tests += 1 + len(r.tests)
	if w.tests > maxTests {
		w.fail(fmt.Sprintf("gave up after %d tests: there are too many ways through these rules", maxTests))
		return 0, ""
	}
	a, doubt := r.ask(w, s)
	if a.unknown {
		w.guessed = true
		return a.share * w.doubtful, doubt
	}
	return a.share, ""
}

func (w *walker) warn(text string) {
	if !slices.Contains(w.warnings, text) {
		w.warnings = append(w.warnings, text)
	}
}

// assume notes a rule whose effect is not known. The walk goes on as if the rule were not there.
func (w *walker) assume(text string) {
	w.guessed, w.assumed = true, true
	w.warn(text)
}

// fail notes the first fault of the rules; the walk goes on as if the rule were not there.
func (w *walker) fail(text string) {
	w.guessed, w.assumed = true, true
	if w.fault == "" {
		w.fault = text
	}
}
