package ipvs

import (
	"maps"
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

func scheduled(name, ip, scheduler string, endpoints []netip.Addr) *service {
	return &service{
		name: name, ip: ip, port: 80, protocol: model.TCP, endpoints: endpoints,
		annotations: []string{"sluice.dev/ipvs-scheduler: " + scheduler},
	}
}

// Each Service has the scheduler that it asks for, and each scheduler does what its name says.
func TestSchedulers(t *testing.T) {
	turns := scheduled("turns", "10.96.0.20", "rr", pods(0, 3))
	weights := scheduled("weights", "10.96.0.21", "wrr", pods(0, 2))
	weights.annotations = append(weights.annotations, `sluice.dev/weights: "pod-10=3, pod-11=1"`)
	least := scheduled("least", "10.96.0.22", "lc", pods(0, 1))
	sources := scheduled("sources", "10.96.0.23", "sh", pods(0, 3))
	st := open(t, turns, weights, least, sources)
	st.start()

	want := map[netip.Addr]int{pod(0): 10, pod(1): 10, pod(2): 10}
	if got := st.spread(turns, 30); !maps.Equal(got, want) {
		t.Errorf("rr: %v, want %v", got, want)
	}
	want = map[netip.Addr]int{pod(0): 30, pod(1): 10}
	if got := st.spread(weights, 40); !maps.Equal(got, want) {
		t.Errorf("wrr with weights 3 and 1: %v, want %v", got, want)
	}
	st.leastConnections(least)
	st.bySource(sources)
}

// leastConnections gives a Service that has connections one endpoint more: all new ones go there until it has as many.
func (st *stage) leastConnections(s *service) {
	st.Helper()
	const n = 4
	for range n {
		conn, _ := st.connect(s)
		defer func() { _ = conn.Close() }()
	}
	s.endpoints = pods(0, 2)
	st.write()
	st.settle()
	for i := range n {
		conn, at := st.connect(s)
		defer func() { _ = conn.Close() }()
		if at != pod(1) {
			st.Errorf("lc: connection %d went to %s, which has %d; %s has %d", i, at, n, pod(1), i)
		}
	}
}

// bySource sees every client at one endpoint alone, and not all of them at the same.
func (st *stage) bySource(s *service) {
	st.Helper()
	used := map[netip.Addr]int{}
	for client := range byte(24) {
		seen := map[netip.Addr]bool{}
		for range 3 {
			d := s.dial()
			d.From = netip.AddrFrom4([4]byte{10, 244, 1, 100 + client})
			o, err := st.pods.Dial(d)
			if st.must(err); o.Action != plan.Forward {
				st.Fatalf("sh: from %s: %s", d.From, o)
			}
			seen[o.Endpoint.Addr()] = true
			used[o.Endpoint.Addr()]++
		}
		if len(seen) != 1 {
			st.Errorf("sh: client %d was sent to %v", client, seen)
		}
	}
	if len(used) < 2 {
		st.Errorf("sh: all clients were sent to one endpoint: %v", used)
	}
}
