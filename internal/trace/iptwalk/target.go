package iptwalk

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
)

// after is where the packets go that a rule's target has dealt with, unless that was their end.
type after struct {
	next     flow // the next rule
	returned flow // the calling chain
}

// apply does to the flow what the rule's target does.
func (w *walker) apply(r *rule, f flow, path []string) after {
	switch p := r.parsed; p.Target {
	case "":
		return after{next: f}
	case "ACCEPT":
		w.accepted.AddAll(f)
		return after{}
	case "DROP":
		w.dropped += f.Total()
		return after{}
	case "REJECT":
		w.rejected += f.Total()
		return after{}
	case "RETURN":
		return after{returned: f}
	case "DNAT", "REDIRECT", "SNAT", "MASQUERADE":
		return w.translate(r, f)
	case "MARK", "CONNMARK":
		return after{next: w.setMarks(r, f)}
	case "SET":
		return after{next: w.mapSet(r, f)}
	case "NOTRACK":
		return after{next: f.Each(func(s state) state { s.untracked = true; return s })}
	case "CT":
		_, notrack := rules.Find(p.TargetOptions, "notrack")
		return after{next: f.Each(func(s state) state { s.untracked = s.untracked || notrack; return s })}
	default:
		return w.jump(r, f, path)
	}
}

// jump goes through another chain. After -g, what comes back from there goes on in this chain's own caller.
func (w *walker) jump(r *rule, f flow, path []string) after {
	name := r.parsed.Target
	c := w.rules.Table(w.table).Chain(name)
	switch {
	case c == nil:
		w.noChain(r)
		return after{next: f}
	case slices.Contains(path, name):
		w.fail(fmt.Sprintf("table %s: chain %s leads back to itself: %s → %s", w.table, name, strings.Join(path, " → "), name))
		return after{next: f}
	}
	w.tests += jumpCost
	out := w.walkChain(c, f, append(slices.Clip(path), name))
	if r.parsed.Goto {
		return after{returned: out}
	}
	return after{next: out}
}

// jumpCost is the work of a jump in tests.
const jumpCost = 100

// noChain tells of a target that is neither a chain nor known here.
func (w *walker) noChain(r *rule) {
	name := r.parsed.Target
	switch {
	case slices.Contains(passing, name):
		return
	case len(r.parsed.TargetOptions) == 0 && !slices.Contains(foreign, name):
		w.fail(fmt.Sprintf("table %s: %q jumps to %s, which is neither a chain of this table nor a target known here", w.table, r.text, name))
	default:
		w.assume(fmt.Sprintf("unknown target %s, assumed to continue: %s", name, r.text))
	}
}

// passing are the targets after which a packet goes on as before.
var passing = []string{
	"LOG", "NFLOG", "ULOG", "TRACE", "AUDIT", "LED", "CLASSIFY", "TCPMSS", "TOS", "DSCP", "TTL", "HL", "ECN",
	"CHECKSUM", "SECMARK", "CONNSECMARK", "TEE", "IDLETIMER", "RATEEST", "TCPOPTSTRIP",
}

// foreign are targets that need no options and do what this package does not follow.
var foreign = []string{"NFQUEUE", "QUEUE", "NETMAP", "TPROXY", "SYNPROXY", "MIRROR", "CLUSTERIP", "HMARK", "DNPT", "SNPT"}

func (w *walker) setMarks(r *rule, f flow) flow {
	change, known := markChange(r.parsed.Target, r.parsed.TargetOptions)
	if !known {
		w.assume("unknown way to set a mark, assumed to leave it: " + string(r.text))
		return f
	}
	return f.Each(change)
}

// markChange is what a MARK or CONNMARK target does to a state.
func markChange(target string, options []rules.Option) (change func(state) state, known bool) {
	_, save := rules.Find(options, "save-mark")
	_, restore := rules.Find(options, "restore-mark")
	if target == "CONNMARK" && (save || restore) {
		nf, ct := maskOf(options, "nfmask"), maskOf(options, "ctmask")
		if save {
			return func(s state) state { s.ctmark = s.ctmark&^ct ^ s.mark&nf; return s }, true
		}
		return func(s state) state { s.mark = s.mark&^nf ^ s.ctmark&ct; return s }, true
	}
	if len(options) != 1 {
		return nil, false
	}
	m, ok := rules.SetMark(options[0])
	if target == "CONNMARK" {
		return func(s state) state { s.ctmark = s.ctmark&^m.Mask ^ m.Value; return s }, ok
	}
	return func(s state) state { s.mark = s.mark&^m.Mask ^ m.Value; return s }, ok
}

// maskOf is the value of --nfmask or --ctmask, or of --mask, which is both; all bits without.
func maskOf(options []rules.Option, name string) uint32 {
	for _, n := range []string{name, "mask"} {
		if o, ok := rules.Find(options, n); ok {
			if m, ok := rules.ParseMark(o.Value()); ok {
				return m.Value
			}
		}
	}
	return ^uint32(0)
}

// translate applies a target of the nat table, which is the last word there.
func (w *walker) translate(r *rule, f flow) after {
	switch r.parsed.Target {
	case "SNAT", "MASQUERADE":
		w.accepted.AddAll(f.Each(func(s state) state { s.snat = true; return s }))
		return after{}
	case "REDIRECT":
		o, _ := rules.Find(r.parsed.TargetOptions, "to-ports")
		w.accepted.AddAll(f.Each(func(s state) state { return w.redirect(s, o.Value()) }))
		return after{}
	}
	o, ok := rules.Find(r.parsed.TargetOptions, "to-destination")
	to, parsed := parseDestination(o.Value())
	if !ok || !parsed {
		w.assume("unknown way to translate, assumed to continue: " + string(r.text))
		return after{next: f}
	}
	for _, p := range f.Parts() {
		addrs := to.addrs
		if addrs == nil {
			addrs = []netip.Addr{p.State.dst.Addr()}
		}
		for _, a := range addrs {
			s := p.State
			s.dnat, s.dst = true, netip.AddrPortFrom(a, to.port(s.dst.Port()))
			w.accepted.Add(s, p.Share/float64(len(addrs)))
		}
	}
	return after{}
}

// redirect sends a packet to the node itself: from a process to the loopback, from the network to the address that it
// came to, if that is the node's, or else to the node's first.
func (w *walker) redirect(s state, ports string) state {
	to := destination{}
	to.first, to.last, _ = parseNATPorts(ports)
	a := s.dst.Addr()
	switch {
	case w.hook == "OUTPUT" && a.Is4():
		a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case w.hook == "OUTPUT":
		a = netip.IPv6Loopback()
	case !w.host.local(a):
		if i := slices.IndexFunc(w.host.Addrs, func(x netip.Addr) bool { return x.BitLen() == a.BitLen() }); i >= 0 {
			a = w.host.Addrs[i]
		}
	}
	s.dnat, s.dst = true, netip.AddrPortFrom(a, to.port(s.dst.Port()))
	return s
}
