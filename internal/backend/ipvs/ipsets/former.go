package ipsets

import (
	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// servedBy are the kinds of sets that tell of frontends, and of which an entry tells.
var servedBy = map[kind]func(model.Family, sets.Entry) plan.Key{
	clusterIP:                       addressKey,
	externalIP:                      addressKey,
	externalIPLocal:                 addressKey,
	loadBalancer:                    addressKey,
	nodePort.ofProtocol(model.TCP):  nodePortKey(model.TCP),
	nodePort.ofProtocol(model.UDP):  nodePortKey(model.UDP),
	nodePort.ofProtocol(model.SCTP): nodePortKey(model.SCTP),
}

func addressKey(_ model.Family, e sets.Entry) plan.Key {
	return plan.Key{Addr: e.Addr, Protocol: model.Protocol(e.Protocol), Port: e.Port}
}

func nodePortKey(p model.Protocol) func(model.Family, sets.Entry) plan.Key {
	return func(f model.Family, e sets.Entry) plan.Key { return plan.NodePortKey(f, p, e.Port) }
}

func entryOfKey(k plan.Key) sets.Entry {
	return sets.Entry{Addr: k.Addr, Protocol: uint8(k.Protocol), Port: k.Port}
}
