package iptwalk

import (
	"fmt"

	"sluice/internal/plan"
	"sluice/internal/trace"
)

// balance has virtual servers of ipvs take the packets that there is one for. It returns those that are sent on to an
// endpoint, those whose endpoint is on one of the node's own addresses, and the rest.
func (w *walker) balance(f flow) (sent, stay, rest flow) {
	if w.host.Balance == nil {
		return flow{}, flow{}, f
	}
	w.table = "ipvs"
	for _, p := range f.Parts() {
		endpoints, ok := w.host.Balance(p.State.dst, w.pkt.Protocol, p.State.mark)
		if !ok {
			rest.Add(p.State, p.Share)
			continue
		}
		w.tellPick(p.State, len(endpoints))
		if len(endpoints) == 0 {
			w.rejected += p.Share
			continue
		}
		for _, e := range endpoints {
			s := p.State
			s.dst, s.dnat = e.AddrPort, true
			share := p.Share * float64(e.Weight) / weights(endpoints)
			if w.isHere(s) {
				stay.Add(s, share)
			} else {
				sent.Add(s, share)
			}
		}
	}
	return sent, stay, rest
}

func weights(endpoints []plan.Endpoint) (sum float64) {
	for _, e := range endpoints {
		sum += float64(e.Weight)
	}
	return sum
}

func (w *walker) tellPick(s state, endpoints int) {
	says := fmt.Sprintf("the virtual server %s picks one of its endpoints, of which it has %d", s.dst, endpoints)
	if s.mark != 0 {
		says += fmt.Sprintf(" (the packet's mark is %#x)", s.mark)
	}
	if endpoints == 0 {
		says = fmt.Sprintf("the virtual server %s has no endpoint: refused", s.dst)
	}
	w.steps = append(w.steps, trace.Step{At: "ipvs " + w.hook, Says: says})
}
