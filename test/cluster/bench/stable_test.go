package bench_test

import (
	"net/netip"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// pause is that of a client between two connections, and patience how long one may take: a packet that was dropped shows
// as one that is sent again.
const (
	pause    = 50 * time.Millisecond
	patience = time.Minute
)

// crowdTally is what those who connect to Services that stay noticed.
type crowdTally struct{ connections, failed, repeated int }

// connectToStable has several clients connect to Services that stay, until it is stopped.
func (s *subject) connectToStable() (stop func() crowdTally) {
	var loads []*lab.Load
	before := s.repeated()
	for host, addrs := range s.clients() {
		for _, from := range addrs {
			for i := range stable {
				to := netip.AddrPortFrom(clusterIP(i), port)
				loads = append(loads, host.Load(lab.Dial{From: from, To: to, Protocol: model.TCP, Timeout: patience}, pause))
			}
		}
	}
	return func() (t crowdTally) {
		for _, l := range loads {
			tally, err := l.Stop()
			if err != nil {
				s.arena.Error(err)
			}
			t.connections += tally.Total
			t.failed += tally.Total - tally.Forwarded()
		}
		t.repeated = s.repeated() - before
		return t
	}
}

// repeated is how often clients on the node have sent a connection's first packet again.
func (s *subject) repeated() (sum int) {
	s.arena.Helper()
	for host := range s.clients() {
		n, err := host.Repeated()
		if err != nil {
			s.arena.Fatal(err)
		}
		sum += n
	}
	return sum
}
