package nftwalk

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/weigh"
)

// Walk tells what the table does to the first packet of a new connection.
func Walk(rs Ruleset, pkt plan.Packet, host Host) trace.Result {
	if pkt.Via == plan.ViaForward && pkt.To.Addr().IsLoopback() && !(host.RouteLocalnet && pkt.To.Addr().Is4()) {
		return trace.Martian()
	}
	w := &walker{rules: rs, pkt: pkt, host: host}
	w.run()
	return w.result()
}

// state is what the rules can change or ask of a packet.
type state struct {
	src            netip.Addr
	dst            netip.AddrPort
	mark, priority uint32
	dnat, snat     bool // the destination, the source was translated
	balanced       bool // by ipvs
}

type flow = weigh.Flow[state]

type walker struct {
	rules Ruleset
	pkt   plan.Packet
	host  Host
	work  int // statements and values so far

	in     string // name of the interface that the packet came in by
	looped bool   // it left the node, for the node

	// the ends of packets: within the base chain that is walked, and for good
	accepted          flow
	dropped, rejected float64
	left              flow

	hooks          trace.Hooks // that some of the flow came by
	steps          []trace.Step
	warnings       []string
	fault          string
	assumed        bool // what a rule does is not known
	askedInterface bool
	askedHistory   bool
}

// run takes the packet from where it begins to all its ends.
func (w *walker) run() {
	f := weigh.Whole(state{src: w.pkt.From, dst: w.pkt.To})
	if w.pkt.Via == plan.ViaLocal {
		w.runLocal(f)
		return
	}
	w.in = w.pkt.Interface
	f = w.walkHook(nft.Prerouting, f)
	here, on := f.Divide(w.isHere)
	w.walkInput(here)
	on = w.walkHook(nft.Forward, on)
	w.left.AddAll(w.walkHook(nft.Postrouting, on))
}

// walkInput goes through the hook of what is for the node.
func (w *walker) walkInput(f flow) {
	here, sent := w.pastIPVS(nft.Input, f)
	w.left.AddAll(here)
	w.left.AddAll(w.walkHook(nft.Postrouting, sent))
}

// runLocal is the way of a packet from a process. One that is for the node itself leaves and comes in again, by lo.
func (w *walker) runLocal(f flow) {
	f, sent := w.pastIPVS(nft.Output, f)
	f.AddAll(sent)
	f = w.walkHook(nft.Postrouting, f)
	here, gone := f.Divide(w.isHere)
	w.left.AddAll(gone)
	w.in, w.looped = "lo", true
	w.walkInput(w.walkHook(nft.Prerouting, here))
}

func (w *walker) isHere(s state) bool { return w.host.local(s.dst.Addr()) }

// walkHook goes through the base chains of a hook, and returns what they let pass.
func (w *walker) walkHook(h nft.Hook, f flow) flow {
	return w.walkBetween(h, math.MinInt32, math.MaxInt32, f)
}

// walkBetween goes through the base chains of a hook from one priority to another.
func (w *walker) walkBetween(h nft.Hook, from, to int32, f flow) flow {
	if !f.Empty() {
		w.hooks.Add(h.String())
	}
	for _, c := range w.baseChains(h, from, to) {
		if !f.Empty() {
			f = w.walkBase(c, f)
		}
	}
	return f
}

func (w *walker) baseChains(h nft.Hook, from, to int32) (chains []*nft.Chain) {
	for _, c := range w.rules.Chains() {
		if c.Base != nil && c.Base.Hook == h && c.Base.Priority >= from && c.Base.Priority <= to {
			chains = append(chains, c)
		}
	}
	slices.SortStableFunc(chains, func(a, b *nft.Chain) int { return cmp.Compare(a.Base.Priority, b.Base.Priority) })
	return chains
}

// walkBase goes through one base chain. One of nat is asked once for each connection and way of translating.
func (w *walker) walkBase(c *nft.Chain, f flow) flow {
	asked := f
	w.accepted = flow{}
	if c.Base.Type == nft.NAT {
		w.accepted, asked = f.Divide(func(s state) bool { return w.translated(c.Base.Hook, s) })
	}
	passed := w.walkChain(c, asked, []string{c.Name})
	passed.AddAll(w.accepted)
	return passed
}

func (w *walker) translated(h nft.Hook, s state) bool {
	if h == nft.Prerouting || h == nft.Output {
		return w.looped || s.dnat || s.balanced
	}
	return w.looped || s.snat
}

// walkChain passes the flow through a chain and returns what leaves at its end, by return, or by way of a goto.
func (w *walker) walkChain(c *nft.Chain, f flow, path []string) (left flow) {
	for i := 0; i < len(c.Rules) && !f.Empty(); i++ {
		f = w.walkRule(&c.Rules[i], f, path, &left)
	}
	left.AddAll(f)
	return left
}

// maxWork bounds the work on rules that multiply the ways through them.
const maxWork = 10_000_000

// afford takes note of work, and reports whether there may be that much.
func (w *walker) afford(work int) bool {
	if w.work += work; w.work <= maxWork {
		return true
	}
	w.fail(fmt.Sprintf("gave up after %d tests: there are too many ways through these rules", maxWork))
	return false
}

func (w *walker) warn(text string) {
	if !slices.Contains(w.warnings, text) {
		w.warnings = append(w.warnings, text)
	}
}

// fail notes the first fault of the rules; the walk goes on as if the statement were not there.
func (w *walker) fail(text string) {
	w.assumed = true
	if w.fault == "" {
		w.fault = text
	}
}

// result gathers the ends of all packets into one answer.
func (w *walker) result() trace.Result {
	ends := weigh.Ends{Rejected: w.rejected, Dropped: w.dropped}
	for _, p := range w.left.Parts() {
		if p.State.dnat || p.State.balanced {
			ends.Translated.Add(weigh.Arrival{At: p.State.dst, Masquerade: p.State.snat}, p.Share)
		} else {
			ends.Untouched += p.Share
		}
	}
	verdicts := ends.Verdicts()
	if w.assumed {
		weigh.Doubt(verdicts)
	}
	r := weigh.Result(verdicts)
	r.Steps = append(r.Steps, w.steps...)
	r.Warnings = w.notes()
	r.Uncertain, r.Error, r.Hooks = w.assumed, w.fault, w.hooks
	return r
}

func (w *walker) notes() []string {
	if w.askedInterface {
		w.warn(weigh.AskedInterface)
	}
	if w.askedHistory {
		w.warn(weigh.AskedHistory)
	}
	return w.warnings
}
