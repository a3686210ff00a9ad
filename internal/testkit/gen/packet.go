package gen

import (
	"net/netip"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Packet draws a packet aimed at the frontends of p, or a little beside them.
func Packet(t *rapid.T, p *plan.Plan) plan.Packet {
	pkt := plan.Packet{Protocol: rapid.SampledFrom([]model.Protocol{model.TCP, model.UDP, model.SCTP}).Draw(t, "protocol")}
	var aim *plan.Port
	if ports := p.Sorted(); len(ports) > 0 && rapid.IntRange(0, 9).Draw(t, "aimed") > 0 {
		aim = rapid.SampledFrom(ports).Draw(t, "aim")
	}
	f := rapid.SampledFrom(model.Families[:]).Draw(t, "family")
	if aim != nil {
		f = aim.ID.Family
	}
	to(t, &pkt, f, aim)
	from(t, &pkt, p, f, aim)
	return pkt
}

// to draws the destination.
func to(t *rapid.T, pkt *plan.Packet, f model.Family, aim *plan.Port) {
	w := pools()
	beside := [...]byFamily{w.node, w.clusterIPs, w.nobodysIPs, w.publicIPs, w.pods, {{"127.0.0.1", "127.8.8.8"}, {"::1"}}}
	addr := pick(t, rapid.SampledFrom(beside[:]).Draw(t, "beside"), f, "to")
	port := rapid.SampledFrom([]uint16{80, 443, 30001, 30002, 30003, 22}).Draw(t, "to port")
	if aim != nil && len(aim.Frontends) > 0 {
		frontend := rapid.SampledFrom(aim.Frontends).Draw(t, "frontend")
		if pkt.Protocol = aim.ID.Protocol; rapid.IntRange(0, 9).Draw(t, "right port") > 0 {
			port = frontend.Port
		}
		nodeAddress := rapid.SampledFrom([]byFamily{w.node, w.node, {{"127.0.0.1", "127.8.8.8"}, {"::1"}}}).Draw(t, "node address")
		if addr = frontend.Addr; frontend.Kind == plan.NodePort {
			addr = pick(t, nodeAddress, f, "to node")
		}
	}
	pkt.To = netip.AddrPortFrom(addr, port)
}

// from draws the source and the way.
func from(t *rapid.T, pkt *plan.Packet, p *plan.Plan, f model.Family, aim *plan.Port) {
	w := pools()
	if pkt.To.Addr().IsLoopback() && rapid.IntRange(0, 3).Draw(t, "loopback") > 0 {
		pkt.From, pkt.Via = pkt.To.Addr(), plan.ViaLocal
		return
	}
	sources := [...]byFamily{w.node, w.pods, w.neighbourPods, w.clients, w.publicIPs}
	pkt.From = pick(t, rapid.SampledFrom(sources[:]).Draw(t, "sources"), f, "from")
	if aim != nil && len(aim.Cluster) > 0 && rapid.IntRange(0, 5).Draw(t, "hairpin") == 0 {
		pkt.From = rapid.SampledFrom(aim.Cluster).Draw(t, "itself").Addr()
	}
	switch {
	case p.Node.IsLocal(pkt.From):
		if pkt.Via = plan.ViaLocal; pkt.To.Addr().IsLoopback() {
			pkt.From = pkt.To.Addr() // as every process does that has no wishes of its own
		}
	case p.Node.Detect[f].Matches(pkt.From, ""), netip.MustParsePrefix([]string{"10.244.1.0/24", "fd00:244:1::/48"}[f]).Contains(pkt.From):
		pkt.Interface = rapid.SampledFrom([]string{"cali5", "cbr0"}).Draw(t, "pod interface")
	default:
		pkt.Interface = "eth0"
	}
}
