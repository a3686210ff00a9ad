package scenarios

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

// answers waits until every connection of the question is answered as it is to be.
func (p *player) answers(t *testing.T, args []string) {
	q := p.parseQuestion(t, args)
	for _, c := range p.connections(t, q) {
		w := p.wanted(t, q.want, c.node)
		p.announce(t, c)
		cluster.WaitFor(t, fmt.Sprintf("%s: %v", c, q.want), func() error { return p.ask(t, c, w) })
	}
}

// announce has the network hand the connection's address to the node that is asked, unless it is a node's own.
func (p *player) announce(t *testing.T, c connection) {
	t.Helper()
	if to := c.To.Addr(); !slices.Contains(c.node.Addresses, to) && !to.IsLoopback() {
		p.Announce(t, c.node.Name, to.String())
	}
}

// ask connects until each pod has answered, and some times more, and returns what is not as wanted.
func (p *player) ask(t *testing.T, c connection, w wanted) error {
	t.Helper()
	seen := map[string]bool{}
	for n := 0; n < 2*len(w.pods) || len(seen) < len(w.pods); n++ {
		if w.action != plan.Forward {
			break
		}
		name, err := p.askOnce(t, c, w)
		if err != nil {
			return err
		}
		seen[name] = true
		if n > 40*len(w.pods) {
			return fmt.Errorf("only these answer: %v", slices.Sorted(maps.Keys(seen)))
		}
	}
	if w.action == plan.Forward {
		return nil
	}
	_, err := p.askOnce(t, c, w)
	return err
}

// silence is how long nothing comes where nothing is to come.
const silence = 400 * time.Millisecond

// askOnce returns who answered, and an error if that is not as wanted.
func (p *player) askOnce(t *testing.T, c connection, w wanted) (name string, err error) {
	t.Helper()
	if w.action == plan.Drop {
		c.Timeout = silence
	}
	o := cluster.Dial(t, c.host, c.Dial)
	if o.Action != w.action {
		return "", fmt.Errorf("got %s", p.told(o))
	}
	if o.Action != plan.Forward {
		return "", nil
	}
	name = p.nameOf(o.Endpoint.Addr())
	masqueraded := o.Peer.Addr() != c.From
	if !slices.Contains(w.pods, name) || w.masquerade == "yes" && !masqueraded || w.masquerade == "no" && masqueraded {
		return "", fmt.Errorf("got %s, want %s masquerade=%s", p.told(o), w.pods, w.masquerade)
	}
	return name, nil
}

// told is an outcome with the pod's name.
func (p *player) told(o lab.Outcome) string {
	if o.Action != plan.Forward {
		return o.String()
	}
	return fmt.Sprintf("%s (%s)", o, p.nameOf(o.Endpoint.Addr()))
}

// stickiness is how many connections of a client have to go to the same pod: by chance they would in one of 2^9 cases.
const stickiness = 10

func (p *player) sticks(t *testing.T, args []string) {
	q := p.parseQuestion(t, args)
	for _, c := range p.connections(t, q) {
		w := p.wanted(t, q.want, c.node)
		p.announce(t, c)
		cluster.WaitFor(t, fmt.Sprintf("%s to stick to one of %v", c, q.want), func() error { return p.stick(t, c, w) })
	}
}

func (p *player) stick(t *testing.T, c connection, w wanted) error {
	t.Helper()
	var first netip.AddrPort
	for range stickiness {
		o := cluster.Dial(t, c.host, c.Dial)
		if o.Action != plan.Forward || !slices.Contains(w.pods, p.nameOf(o.Endpoint.Addr())) {
			return fmt.Errorf("got %s", p.told(o))
		}
		if first.IsValid() && o.Endpoint != first {
			return fmt.Errorf("got %s after %s", p.told(o), first)
		}
		first = o.Endpoint
	}
	return nil
}
