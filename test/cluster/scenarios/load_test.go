package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

// impatient is less than the second after which TCP sends a SYN again: a connection that needs that counts as failed.
const impatient = 900 * time.Millisecond

// load is a client that connects all the time.
type load struct {
	connection
	*lab.Load
}

// start has connections made, that long apart.
func (c connection) start(pause time.Duration) *load {
	c.Timeout = impatient
	return &load{c, c.host.Load(c.Dial, pause)}
}

// end stops it and returns how many connections there were; an error tells of those that failed.
func (l *load) end() (int, error) {
	tally, err := l.Stop()
	if err == nil && len(tally.Failed) > 0 {
		err = fmt.Errorf("of %d connections some failed: %v", tally.Total, tally.Failed)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.connection, err)
	}
	return tally.Total, err
}

// load starts to connect, or ends it. Only one node is asked at a time where the network has to hand it the address.
func (p *player) load(t *testing.T, args []string) {
	if args[0] == "ends" {
		p.endLoads(t)
		return
	}
	for _, c := range p.connections(t, p.parseQuestion(t, args)) {
		p.loads = append(p.loads, c.start(50*time.Millisecond))
	}
}

func (p *player) endLoads(t *testing.T) {
	t.Helper()
	for _, l := range p.loads {
		if n, err := l.end(); err != nil {
			t.Error(err)
		} else if n == 0 {
			t.Errorf("%s: there was no connection", l.connection)
		}
	}
	p.loads = nil
}

// steady is the Services that no scenario touches, and their clients.
type steady struct {
	*player
	open []*lab.Conn // that stay open all the time
}

// steadyObjects are Services of the usual kinds, with pods on both nodes.
const steadyObjects = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: steady}
spec:
  selector: {matchLabels: {app: steady}}
  template:
    metadata: {labels: {app: steady}}
    spec:
      containers: [{name: steady, image: none, ports: [{containerPort: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: tcp}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: steady}
  externalIPs: [192.0.2.250]
  ports: [{port: 80, targetPort: 8080, nodePort: 32700}]
---
apiVersion: v1
kind: Service
metadata: {name: udp}
spec:
  selector: {app: steady}
  ports: [{port: 53, targetPort: 8080, protocol: UDP}]
`

// steadyLoads are the clients, 100 connections a second together. None comes to a node port of node-a, whose mode serves
// these at the node's first address only: there is a scenario in which that changes.
const steadyLoads = `
pod tcp:80/TCP
node tcp:80/TCP
pod udp:53/UDP
outside node:32700/TCP on node-b
outside 192.0.2.250:80/TCP on node-a
node node4:32700/TCP on node-b
`

// steady starts the load that lasts as long as all scenarios.
func (b *bench) steady(t *testing.T) *steady {
	t.Helper()
	s := &steady{player: &player{bench: b, scenario: scenario{name: "steady"}}}
	b.Kubectl(t, "", "create", "namespace", s.name)
	b.Kubectl(t, steadyObjects, "--namespace="+s.name, "apply", "-f", "-")
	b.Kubectl(t, "", "--namespace="+s.name, "rollout", "status", "daemonset/steady")
	var all []connection
	for line := range strings.Lines(strings.TrimSpace(steadyLoads)) {
		q := s.parseQuestion(t, strings.Fields(line))
		for _, c := range s.connections(t, q) {
			w := s.wanted(t, []string{"app=steady"}, c.node)
			s.announce(t, c)
			cluster.WaitFor(t, c.String(), func() error { return s.ask(t, c, w) })
			all = append(all, c)
		}
	}
	for _, c := range all {
		if c.Protocol == model.TCP {
			s.connect(t, c)
		}
		s.loads = append(s.loads, c.start(time.Duration(len(all))*10*time.Millisecond))
	}
	return s
}

// connect opens a connection that stays.
func (s *steady) connect(t *testing.T, c connection) {
	t.Helper()
	conn, o, err := c.host.Connect(c.Dial)
	if err != nil || o.Action != plan.Forward {
		t.Fatalf("%s: %s, %v", c, o, err)
	}
	s.open = append(s.open, conn)
}

// end stops the load and tells what failed.
func (s *steady) end(t *testing.T) {
	t.Helper()
	for _, conn := range s.open {
		if err := conn.Echo("still there"); err != nil {
			t.Errorf("a connection that was open all the time: %v", err)
		}
		_ = conn.Close() // it has done its duty
	}
	total := 0
	for _, l := range s.loads {
		n, err := l.end()
		if err != nil {
			t.Error(err)
		}
		total += n
	}
	t.Logf("%d connections to Services that no scenario touches", total)
}
