package churn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/testkit/crowd"
)

// Config is how much there is and how much of it changes.
type Config struct {
	Services int
	// Stable are the first of them, which do not change, and to which clients connect.
	Stable int
	// Changes are made one after the other, so many in each second.
	Changes, PerSecond int
	Seed               uint64
}

// Result is what happened.
type Result struct {
	// CPU is what the process that writes took for all changes, kernel included, and Writes in how many writes.
	CPU    time.Duration
	Writes int
	// Connections to stable Services, of which Failed tells those that failed, by what happened instead.
	Connections int
	Failed      []string
	// Repeated are first packets of connections that had to be sent again, because one was dropped on its way.
	Repeated int
}

// endpoints are how many each Service has at first.
const endpoints = 10

// pause is that of a client between two connections.
const pause = 50 * time.Millisecond

// patience is how long a connection may take. Where a rule is missing the network refuses at once, and a packet that was
// dropped shows in Result.Repeated.
const patience = time.Minute

func (c Config) crowd() crowd.Crowd {
	return crowd.Crowd{Services: c.Services, Endpoints: endpoints, At: func(service, endpoint int) netip.Addr {
		if service < c.Stable {
			return netip.AddrFrom4([4]byte{10, 244, 1, byte(10 + endpoint)})
		}
		return netip.Addr{}
	}}
}

// Run makes the changes on a node of its own, compares the kernel with the plan, and ends.
func Run(tb testing.TB, c Config) (r Result) {
	tb.Helper()
	l := up(tb)
	e := start(tb, l.Node(), c)
	before := repeated(tb, l)
	var loads []*lab.Load
	for i := range c.Stable {
		loads = append(loads, l.Host("pods-a").Load(client(i), pause))
	}
	report := e.change()
	for i, load := range loads {
		tally, err := load.Stop()
		r.Connections += tally.Total
		if err != nil || len(tally.Failed) > 0 {
			r.Failed = append(r.Failed, fmt.Sprintf("stable Service %d: of %d connections %v, %v", i, tally.Total, tally.Failed, err))
		}
	}
	r.CPU, r.Writes, r.Repeated = report.CPU, report.Writes, repeated(tb, l)-before
	compare(tb, l.Node(), c)
	e.end()
	return r
}

// client is one of stable Service number i, with an address of its own: where two come by the same port to the same
// endpoint at once, connection tracking drops a packet.
func client(i int) lab.Dial {
	return lab.Dial{
		From: netip.AddrFrom4([4]byte{10, 244, 1, byte(100 + i)}), To: netip.AddrPortFrom(crowd.ClusterIP(i), crowd.Port),
		Protocol: model.TCP, Timeout: patience,
	}
}

// up is a lab in which every pod answers and the node is sent whatever is for a cluster IP.
func up(tb testing.TB) *lab.Lab {
	tb.Helper()
	top := lab.Reference()
	top.ToNode = append(top.ToNode, netip.MustParsePrefix("10.100.0.0/16"))
	l, err := lab.Up(top)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	if _, err := l.Host("pods-a").ServeAll(model.TCP, crowd.TargetPort); err != nil {
		tb.Fatal(err)
	}
	return l
}

// repeated is how often clients have sent a connection's first packet again.
func repeated(tb testing.TB, l *lab.Lab) int {
	tb.Helper()
	n, err := l.Host("pods-a").Repeated()
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
