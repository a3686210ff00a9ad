package nftables

import (
	"strconv"
	"strings"
	"time"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// chainTurns leads to the chains of the lists whose endpoints take turns.
const chainTurns = "round-robin"

const turnsPrefix = chainTurns + "-"

// turnsChain is the name of the chain of a list whose endpoints take turns.
func turnsChain(n listNumber) string { return turnsPrefix + strconv.FormatUint(uint64(n), 16) }

// isTurnsChain reports whether a chain is that of some list, or else a bucket's or one of the structure.
func isTurnsChain(name string) bool { return strings.HasPrefix(name, turnsPrefix) }

// rules pick a slot at random.
func (b bucket) rules() []nft.Rule {
	pick := nft.Numgen{Mod: b.slots}
	if b.timeout == 0 {
		return append([]nft.Rule{count()}, both(func(f model.Family) nft.Rule { return toSlot(f, pick) })...)
	}
	return stick(b.family, pick, time.Duration(b.timeout)*time.Second)
}

// turnsChain is the chain of a list whose endpoints take turns.
func (p *port) turnsChain(l *list) nft.Chain {
	f, pick := p.family(), nft.Numgen{Mod: uint32(l.slotCount()), Incremental: true}
	c := nft.Chain{
		Name: turnsChain(l.number), Comment: p.plan.ID.String(), Rules: []nft.Rule{count(), toSlot(f, pick)},
	}
	if timeout := l.affinity(p.plan); timeout > 0 {
		c.Rules = stick(f, pick, timeout)
	}
	return c
}

// turns is the chain that leads to those of lists.
func turns() nft.Chain {
	return nft.Chain{
		Name: chainTurns, Comment: "a slot in turn",
		Rules: []nft.Rule{when{}.then(nft.Vmap{Key: theList(), Map: setRoundRobin.name()})},
	}
}

// theList is the list in the route.
func theList() nft.Bits { return routeBits(maskList) }

// count counts the connection.
func count() nft.Rule { return when{}.then(in(theList(), setConnections)) }

// toSlot sends the connection to a slot of the list.
func toSlot(f model.Family, pick nft.Numgen) nft.Rule {
	return ip(f).then(transport(), nft.DNAT{
		IPv6: f == model.IPv6, To: nft.Lookup{Key: nft.Concat{theList(), pick}, Map: setEndpoints.of(f).name()},
	})
}

// stick sends a client to the endpoint that it had, and remembers for longer; else to a slot, and remembers. Either
// way the priority is the number of an endpoint in the end, whose greater part is the list's. The last rule serves those
// that the map of clients has no room for.
func stick(f model.Family, pick nft.Numgen, timeout time.Duration) []nft.Rule {
	client := nft.Concat{theList(), saddr(f)}
	clients := setAffinity.of(f)
	forget := nft.Remove{Map: clients.name(), Key: client, Data: nft.Priority} // an Update would not change the endpoint
	remember := nft.Update{Map: clients.name(), Key: client, Timeout: timeout, Data: nft.Priority}
	again := nft.DNAT{IPv6: f == model.IPv6, To: nft.Lookup{Key: nft.Priority, Map: setAffineEndpoints.of(f).name()}}
	known := takeRoute(client, clients)
	chosen := takeRoute(nft.Concat{theList(), pick}, setAffineSlots.of(f))
	one := ip(f).and(transport())
	return []nft.Rule{
		count(),
		because("the endpoint that the client had", one.then(known, remember, again)),
		because("another one", one.then(chosen, forget, remember, again)),
		because("no room to remember the client", toSlot(f, pick)),
	}
}
