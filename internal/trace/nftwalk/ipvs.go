package nftwalk

import (
	"math"

	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// The priorities at which ipvs takes packets that are for the node, and those that the node sends
// (net/netfilter/ipvs/ip_vs_core.c).
const (
	priorityIPVSInput  = nft.PrioritySrcNAT - 1
	priorityIPVSOutput = nft.PriorityDstNAT + 2
)

// pastIPVS goes through a hook at which ipvs is. It returns what stays on its way, and what ipvs sends to elsewhere, which
// has been through all of the output hook by then. What ipvs sends to the node itself goes on where it was.
func (w *walker) pastIPVS(h nft.Hook, f flow) (stays, sent flow) {
	if w.host.IPVS == nil {
		return w.walkHook(h, f), flow{}
	}
	at := priorityIPVSInput
	if h == nft.Output {
		at = priorityIPVSOutput
	}
	stays, sent = w.balance(h, w.walkBetween(h, math.MinInt32, at, f))
	return w.walkBetween(h, at+1, math.MaxInt32, stays), w.walkHook(nft.Output, sent)
}

// balance has ipvs send packets to endpoints. It looks at each packet once.
func (w *walker) balance(h nft.Hook, f flow) (stays, sent flow) {
	for _, part := range f.Parts() {
		s := part.State
		endpoints, served := w.host.IPVS.Pick(s.dst, w.pkt.Protocol, s.mark)
		switch {
		case s.balanced || !served:
			stays.Add(s, part.Share)
		case len(endpoints) == 0:
			w.tellIPVS(h, s, "refused with ICMP port unreachable: its virtual server has no endpoints")
			w.rejected += part.Share
		default:
			here, away := spread(s, endpoints, part.Share).Divide(w.isHere)
			stays.AddAll(here)
			sent.AddAll(away)
			w.tellIPVS(h, s, destinations(endpoints))
		}
	}
	return stays, sent
}

// spread gives each endpoint its part, by weight.
func spread(s state, endpoints []plan.Endpoint, share float64) (f flow) {
	total := 0
	for _, e := range endpoints {
		total += int(e.Weight)
	}
	s.balanced = true
	for _, e := range endpoints {
		s.dst = e.AddrPort
		f.Add(s, share*float64(e.Weight)/float64(total))
	}
	return f
}

func destinations(endpoints []plan.Endpoint) string {
	var words words
	for _, e := range endpoints {
		words.say("the destination becomes ", e.String())
	}
	return words.String()
}

// tellIPVS makes a step of what ipvs does.
func (w *walker) tellIPVS(h nft.Hook, s state, says string) {
	server := "virtual server " + s.dst.String() + "/" + w.pkt.Protocol.String()
	if s.mark != 0 {
		server += " or of mark " + metaText(nft.Mark, nft.Value{}.Uint32(s.mark))
	}
	w.steps = append(w.steps, trace.Step{At: "ipvs " + h.String(), Rule: server, Says: says})
}
