package localhost

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// target is what the proxy has to do for a Service port; false: nothing. It does as the rules at all other addresses of
// this node: they draw endpoints where nothing else is asked for, and send no header of the PROXY protocol.
func target(p *plan.Port) (t relay.Target, ok bool) {
	number, ok := nodePort(p)
	route := p.External[plan.ClientHost]
	if !ok || route.Action != plan.Forward || p.ID.Protocol == model.SCTP {
		return t, false
	}
	t = relay.TargetOf(p, route.List)
	t.Direct = true
	t.Listen = netip.AddrPortFrom(relay.Loopback(p.ID.Family), number)
	t.ProxyProtocol = 0
	if t.Balancing == model.BalanceDefault {
		t.Balancing = model.BalanceRandom
	}
	return t, true
}

func nodePort(p *plan.Port) (number uint16, ok bool) {
	for _, f := range p.Frontends {
		if f.Kind == plan.NodePort {
			return f.Port, true
		}
	}
	return 0, false
}
