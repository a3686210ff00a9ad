package demo

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// connections is how many are opened to see how they spread. That a fair draw sends fewer than a fifth of them to one of
// two pods happens once in ten billion stories.
const connections = 100

// tcp is a connection to an address of the story.
func tcp(to string) lab.Dial {
	return lab.Dial{To: netip.MustParseAddrPort(to), Protocol: model.TCP}
}

// spread connects by every kind of address from every kind of place.
func (s *story) spread(context.Context) error {
	ways := []struct {
		from *lab.Host
		to   string
		what string
		pods []*pod
		seen string // whom the pods should see as their client
	}{
		{s.shell, registryAddress, "registry's cluster IP", s.behind("registry"), s.unlessProxied(shellAddress)},
		{s.shell, mysqlAddress, "mysql-service's cluster IP", s.behind("mysql-service"), s.unlessProxied(shellAddress)},
		{s.node, mysqlAddress, "the same", s.behind("mysql-service"), nodeAddress},
		{s.client, mysqlNodePort, "mysql-service's node port", s.behind("mysql-service"), nodeAddress},
		{s.shell, mysqlNodePort, "the same", s.behind("mysql-service"), nodeAddress},
		{s.node, mysqlNodePort, "the same", s.behind("mysql-service"), nodeAddress},
	}
	for _, w := range ways {
		tally, err := w.from.Spread(tcp(w.to), connections)
		if err != nil {
			return err
		}
		s.say("%d connections from %s to %s, %s:", connections, w.from.Name, w.to, w.what)
		s.bars(tally)
		s.check(even(tally, w.pods), "they spread over %s", names(w.pods))
		s.check(onlySeen(tally, w.seen), "the pods saw the client as %s", s.whose(w.seen, w.from))
		s.print("")
	}
	return s.hairpin()
}

// hairpin is a pod that reaches itself by its own Service.
func (s *story) hairpin() error {
	p := s.behind("mysql-service")[0]
	reached, masqueraded := 0, 0
	for range connections {
		o, err := p.host.Dial(tcp(mysqlAddress))
		if err != nil {
			return err
		}
		if o.Action == plan.Forward && o.Endpoint.Addr() == p.address {
			reached++
			if o.Peer.Addr() != p.address {
				masqueraded++
			}
		}
	}
	s.say("%s calls its own Service. When the choice falls on itself (%d times of %d) it must not see", p.name, reached, connections)
	s.say("its own address, or it would answer itself past the node:")
	s.check(reached > 0 && masqueraded == reached, "%s saw the node as its client %d times", p.name, masqueraded)
	return nil
}

// unlessProxied is the address of a client as pods see it where nothing has to be masqueraded.
func (s *story) unlessProxied(client string) string {
	if s.proxied() {
		return nodeAddress
	}
	return client
}

// behind are the pods of a Service.
func (s *story) behind(service string) (all []*pod) {
	for _, p := range s.pods {
		if p.service == service {
			all = append(all, p)
		}
	}
	return all
}

func (s *story) bars(t lab.Tally) {
	for _, p := range s.pods {
		if n := t.Endpoints[p.endpoint()]; n > 0 {
			s.bar(fmt.Sprintf("%s %s", p.name, p.address), n, t.Total)
		}
	}
	for _, a := range []plan.Action{plan.Reject, plan.Drop, plan.Unhandled} {
		if n := t.Failed[a]; n > 0 {
			s.bar(a.String(), n, t.Total)
		}
	}
}

// even reports whether all connections reached the pods, and each pod a fair part of them.
func even(t lab.Tally, pods []*pod) bool {
	reached := 0
	for _, p := range pods {
		n := t.Endpoints[p.endpoint()]
		if n < t.Total*2/5/len(pods) {
			return false
		}
		reached += n
	}
	return reached == t.Total
}

func onlySeen(t lab.Tally, client string) bool {
	return t.Total > 0 && t.Peers[netip.MustParseAddr(client)] == t.Total
}

// whose says in words whom the pods saw.
func (s *story) whose(seen string, from *lab.Host) string {
	switch {
	case s.proxied() && from != s.node:
		return seen + ", the node, whose proxy connects to them"
	case seen == nodeAddress && from != s.node:
		return seen + ", the node: it was masqueraded, so that answers come back this way"
	case seen == nodeAddress:
		return seen + ", the node that it is"
	}
	return seen + ", which is its own address"
}

// names lists pods as a sentence does.
func names(pods []*pod) string {
	var text strings.Builder
	for i, p := range pods {
		switch {
		case i == 0:
		case i == len(pods)-1:
			text.WriteString(" and ")
		default:
			text.WriteString(", ")
		}
		text.WriteString(p.name)
	}
	return text.String()
}
