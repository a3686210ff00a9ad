package ipvs

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// An endpoint that goes gets no new connections, and keeps those that it has until they end. UDP goes on elsewhere at
// once.
func TestRemovedEndpoint(t *testing.T) {
	web := &service{name: "web", ip: "10.96.0.30", port: 80, protocol: model.TCP, endpoints: pods(0, 2)}
	dns := &service{name: "dns", ip: "10.96.0.31", port: 53, protocol: model.UDP, endpoints: pods(0, 2)}
	st := open(t, web, dns)
	st.start()
	conn, gone := st.connect(web)
	defer func() { _ = conn.Close() }()
	flow := st.flowTo(dns, gone)

	stays := pods(0, 2)
	stays = slices.DeleteFunc(stays, func(a netip.Addr) bool { return a == gone })
	web.endpoints, dns.endpoints = stays, stays
	st.write()
	st.settle()

	if d, ok := st.destination(web, gone); !ok || d.Weight != 0 || d.Active != 1 {
		t.Errorf("an endpoint that goes, and has a connection: %+v, there: %t", d, ok)
	}
	if d, ok := st.destination(dns, gone); ok {
		t.Errorf("an endpoint of UDP that goes is still there: %+v", d)
	}
	st.must(conn.Echo("still there?"))
	if got, want := st.spread(web, 10), map[netip.Addr]int{stays[0]: 10}; !maps.Equal(got, want) {
		t.Errorf("new connections went to %v, want %v", got, want)
	}
	st.eventually(func() error {
		at, err := st.arrives(dns, flow)
		if err == nil && at != stays[0] {
			err = fmt.Errorf("a flow of datagrams still goes to %s", at)
		}
		return err
	})
	st.must(conn.Close())
	st.eventually(func() error {
		if d, ok := st.destination(web, gone); ok {
			return fmt.Errorf("its connection has ended, and it is still there: %+v", d)
		}
		return nil
	})
}

// flowTo finds a port whose datagrams arrive at an endpoint.
func (st *stage) flowTo(s *service, endpoint netip.Addr) (port uint16) {
	st.Helper()
	for port = 20000; port < 20100; port++ {
		at, err := st.arrives(s, port)
		if st.must(err); at == endpoint {
			return port
		}
	}
	st.Fatalf("no datagram arrived at %s", endpoint)
	return 0
}

// A Service whose endpoints are replaced one after the other loses no connection, short or long.
func TestRollingUpdate(t *testing.T) {
	const replicas, rounds = 3, 8
	web := &service{name: "web", ip: "10.96.0.30", port: 80, nodePort: 30080, protocol: model.TCP, endpoints: pods(0, replicas)}
	st := open(t, web)
	d := st.start()
	loads := st.loads(web)
	var stays []*lab.Conn
	for round := 1; round <= rounds; round++ {
		conn, _ := st.connect(web)
		stays = append(stays, conn)
		web.endpoints = pods(round, round+replicas)
		st.write()
		st.settle()
	}
	total := 0
	for from, load := range loads {
		tally, err := load.Stop()
		if err != nil || len(tally.Failures) > 0 || tally.Total == 0 {
			t.Errorf("from %s: of %d connections failed %v, error %v; the first: %v", from, tally.Total, tally.Failed, err, tally.Failures)
		}
		total += tally.Total
	}
	for i, conn := range stays {
		if err := conn.Echo("still there?"); err != nil {
			t.Errorf("a connection from round %d: %v", i+1, err)
		}
		_ = conn.Close()
	}
	for _, complaint := range d.Complaints() {
		t.Errorf("the daemon complained: %s", complaint)
	}
	t.Logf("%d connections, and %d that lasted, over %d rounds", total, len(stays), rounds)
}

// loads has clients of each kind open connections all the time.
func (st *stage) loads(s *service) map[string]*lab.Load {
	loads := map[string]*lab.Load{}
	for from, to := range map[string]netip.AddrPort{
		"pods-a": s.at(), "node-a": s.at(), "clients": netip.AddrPortFrom(netip.MustParseAddr("192.168.10.11"), s.nodePort),
	} {
		loads[from] = st.lab.Host(from).Load(lab.Dial{To: to, Protocol: s.protocol, Timeout: limit}, 3*time.Millisecond)
	}
	return loads
}
