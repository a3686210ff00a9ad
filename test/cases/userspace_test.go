package cases

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/await"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/scenario"
)

// relayed are a Service of TCP and one of UDP with an endpoint each, and two whose endpoint is their own cluster IP.
const relayed = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  clusterIP: 10.96.0.10
  ports: [{name: http, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  clusterIP: 10.96.0.11
  ports: [{name: dns, port: 53, protocol: UDP}]
---
apiVersion: v1
kind: Service
metadata: {name: circle}
spec:
  clusterIP: 10.96.0.12
  ports: [{name: http, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: whirl}
spec:
  clusterIP: 10.96.0.13
  ports: [{name: dns, port: 53, protocol: UDP}]
---
`

const relayedTo = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: %[2]s, port: %[3]d, protocol: %[4]s}]
endpoints: [{addresses: [%[5]s]}]
---
`

// proxied is a node whose daemon relays connections, within limits.
type proxied struct {
	*testing.T
	lab    *lab.Lab
	daemon *daemon.Daemon
}

func openProxied(t *testing.T, args ...string) *proxied {
	t.Helper()
	st := &proxied{T: t, lab: scenario.Up(t, lab.Reference())}
	for protocol, port := range map[model.Protocol]uint16{model.TCP: 8080, model.UDP: 8081} {
		_, err := st.lab.Host("pods-b").ServeAll(protocol, port)
		st.must(err)
	}
	text := scenario.Nodes + "---" + relayed + fmt.Sprintf(relayedTo, "web", "http", 8080, "TCP", "10.244.2.5") +
		fmt.Sprintf(relayedTo, "dns", "dns", 8081, "UDP", "10.244.2.5") + fmt.Sprintf(relayedTo, "circle", "http", 80, "TCP", "10.96.0.12") +
		fmt.Sprintf(relayedTo, "whirl", "dns", 53, "UDP", "10.96.0.13")
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	st.must(os.WriteFile(objects, []byte(text), 0o600))
	st.daemon = daemon.Start(t, st.lab.Node(), append(append([]string{"--mode=userspace", "--manifests", objects}, args...), scenario.Reference()...)...)
	st.eventually("the rules stand", func() bool { return strings.Contains(st.daemon.Log(), "rules written") })
	return st
}

func (st *proxied) must(err error) {
	st.Helper()
	if err != nil {
		st.Fatal(err)
	}
}

func (st *proxied) eventually(what string, ok func() bool) {
	st.Helper()
	await.True(st, 10*time.Millisecond, what, ok)
}

// client is a connection of a pod, or why there is none.
func (st *proxied) client(to string) (*lab.Conn, lab.Outcome) {
	st.Helper()
	c, o, err := st.lab.Host("pods-a").Connect(lab.Dial{To: netip.MustParseAddrPort(to), Protocol: model.TCP, Timeout: limit})
	st.must(err)
	if c != nil {
		st.Cleanup(func() { _ = c.Close() })
	}
	return c, o
}

func (st *proxied) refused(to string) {
	st.Helper()
	if _, o := st.client(to); o.Action != plan.Reject || !errors.Is(o.Err, syscall.ECONNRESET) {
		st.Errorf("%s: %s (%v), want a reset", to, o, o.Err)
	}
}

// scraped reports whether the daemon tells a line of metrics.
func (st *proxied) scraped(line string) bool {
	st.Helper()
	text := ""
	err := st.lab.Node().Do(func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:10249") // in this thread's namespace
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n")
		if err != nil {
			return err
		}
		b, err := io.ReadAll(conn)
		text = string(b)
		return err
	})
	st.must(err)
	return strings.Contains(text, "\n"+line+"\n")
}

func (st *proxied) metric(line string) {
	st.Helper()
	st.eventually(line, func() bool { return st.scraped(line) })
}

// Who comes when as many connections are open as there may be is refused at once, and told of in the log and in metrics.
// Those that are open go on, and when one ends there is room for another. One Service leaves room for others.
func TestLimitOfProxiedConnections(t *testing.T) {
	st := openProxied(t, "--userspace-max-connections=10")
	var open []*lab.Conn
	for range 8 { // four fifths
		c, o := st.client("10.96.0.10:80")
		if c == nil {
			t.Fatalf("connection %d: %s", len(open)+1, o)
		}
		open = append(open, c)
	}
	for range 3 {
		st.refused("10.96.0.10:80")
	}
	st.metric(`sluice_relay_refused_connections_total{protocol="TCP",reason="limit"} 3`)
	st.metric(`sluice_relay_open_connections{protocol="TCP"} 8`)
	st.metric(`sluice_relay_connections_limit{protocol="TCP"} 10`)
	st.metric(`sluice_service_refused_connections_total{ip_family="IPv4",name="web",namespace="default",port="http",protocol="TCP"} 3`)
	st.metric(`sluice_service_open_connections{ip_family="IPv4",name="web",namespace="default",port="http",protocol="TCP"} 8`)
	if n := strings.Count(st.daemon.Log(), "connections are refused: too many are open"); n != 1 || !strings.Contains(st.daemon.Log(), "service=default/web:http") {
		t.Errorf("told %d times, want once, with the Service:\n%s", n, st.daemon.Log())
	}
	for _, c := range open {
		st.must(c.Echo("still there?"))
	}
	st.must(open[0].Close())
	st.metric(`sluice_relay_open_connections{protocol="TCP"} 7`)
	if c, o := st.client("10.96.0.10:80"); c == nil {
		t.Errorf("after one has left: %s", o)
	}
}

// UDP has no refusal: the session that was silent for longest makes room for a new one, and no more are open than there
// may be.
func TestLimitOfProxiedSessions(t *testing.T) {
	st := openProxied(t, "--userspace-max-sessions=4", "--userspace-udp-idle-timeout=5m")
	for i := range 12 {
		d := lab.Dial{
			From: netip.MustParseAddr(fmt.Sprintf("10.244.1.%d", 5+i)), To: netip.MustParseAddrPort("10.96.0.11:53"),
			Protocol: model.UDP, Timeout: limit,
		}
		o, err := st.lab.Host("pods-a").Dial(d)
		st.must(err)
		if o.Action != plan.Forward {
			t.Fatalf("client %d: %s (%v)", i, o, o.Err)
		}
	}
	st.metric(`sluice_relay_open_connections{protocol="UDP"} 4`)
	st.metric(`sluice_relay_connections_limit{protocol="UDP"} 4`)
	st.metric(`sluice_relay_ended_sessions_total{reason="displaced"} 8`)
	st.metric(`sluice_relay_connections_total{protocol="UDP"} 12`)
}

// A Service whose endpoint is its own cluster IP resets its clients, and takes nothing from others.
func TestProxiedServiceThatLeadsToItself(t *testing.T) {
	st := openProxied(t, "--userspace-max-connections=10")
	for range 10 {
		st.refused("10.96.0.12:80")
	}
	st.metric(`sluice_relay_open_connections{protocol="TCP"} 0`)
	st.metric(`sluice_relay_refused_connections_total{protocol="TCP",reason="limit"} 0`)
	if n := strings.Count(st.daemon.Log(), "reason=loop"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, st.daemon.Log())
	}
	if c, o := st.client("10.96.0.10:80"); c == nil {
		t.Errorf("another Service: %s", o)
	}
	o, err := st.lab.Host("pods-a").Dial(lab.Dial{
		To: netip.MustParseAddrPort("10.96.0.13:53"), Protocol: model.UDP, Timeout: lab.Silence(model.UDP),
	})
	if st.must(err); o.Action != plan.Drop {
		t.Errorf("datagrams: %s", o)
	}
	st.metric(`sluice_relay_refused_connections_total{protocol="UDP",reason="loop"} 1`)
	st.metric(`sluice_relay_connections_total{protocol="UDP"} 2`)
}
