package cases

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/await"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/scenario"
)

// localhost is a node whose own processes use node ports at loopback addresses.
type localhost struct {
	*testing.T
	lab    *lab.Lab
	config string // path
	args   []string
}

// atLocalhost are a Service of policy Local, one of UDP, and one without endpoints.
const atLocalhost = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  externalTrafficPolicy: Local
  clusterIPs: [10.96.0.10, "fd00:96::10"]
  ports: [{name: http, port: 80, nodePort: 30080}]
---
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  type: NodePort
  clusterIPs: [10.96.0.11, "fd00:96::11"]
  ports: [{name: dns, port: 53, protocol: UDP, nodePort: 30053}]
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec:
  type: NodePort
  clusterIPs: [10.96.0.12, "fd00:96::12"]
  ports: [{name: http, port: 80, nodePort: 30081}]
---
`

// pods gives a Service an endpoint on each of the two nodes.
const pods = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]d, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv%[2]d
ports: [{name: %[3]s, port: %[4]d, protocol: %[5]s}]
endpoints: [{addresses: ["%[6]s5"], nodeName: node-a}, {addresses: ["%[7]s5"], nodeName: node-b}]
---
`

func openLocalhost(t *testing.T) *localhost {
	t.Helper()
	st := &localhost{T: t, lab: scenario.Up(t, lab.Reference())}
	for _, host := range []string{"pods-a", "pods-b"} {
		for protocol, port := range map[model.Protocol]uint16{model.TCP: 8080, model.UDP: 8081} {
			_, err := st.lab.Host(host).ServeAll(protocol, port)
			st.must(err)
		}
	}
	text := scenario.Nodes + "---" + atLocalhost
	for family, ranges := range map[int][2]string{4: {"10.244.1.", "10.244.2."}, 6: {"fd00:244:0:1::", "fd00:244:0:2::"}} {
		text += fmt.Sprintf(pods, "web", family, "http", 8080, "TCP", ranges[0], ranges[1])
		text += fmt.Sprintf(pods, "dns", family, "dns", 8081, "UDP", ranges[0], ranges[1])
	}
	dir := t.TempDir()
	objects := filepath.Join(dir, "objects.yaml")
	st.must(os.WriteFile(objects, []byte(text), 0o600))
	st.config = filepath.Join(dir, "config.yaml")
	st.args = append([]string{"--manifests", objects, "--config", st.config}, scenario.Reference()...)
	return st
}

func (st *localhost) must(err error) {
	st.Helper()
	if err != nil {
		st.Fatal(err)
	}
}

func (st *localhost) start(args ...string) *daemon.Daemon {
	st.Helper()
	return daemon.Start(st, st.lab.Node(), slices.Concat(st.args, args)...)
}

// configure has the daemon in a mode, with the proxy or without.
func (st *localhost) configure(mode string, gate bool) {
	st.Helper()
	text := fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.244.0.0/16,fd00:244::/56
hostnameOverride: node-a
nodePortAddresses: [primary, localhost]
mode: %s
featureGates: {KubeProxyNFTablesLocalhostNodePorts: %t}
`, mode, gate)
	st.must(os.WriteFile(st.config+".new", []byte(text), 0o600))
	st.must(os.Rename(st.config+".new", st.config))
}

// dial is a connection of the node itself.
func dial(to string, protocol model.Protocol) lab.Dial {
	return lab.Dial{To: netip.MustParseAddrPort(to), Protocol: protocol}
}

// spread wants connections of the node itself to reach the endpoints on both nodes in the end.
func (st *localhost) spread(to string, protocol model.Protocol) {
	st.Helper()
	st.eventually(func() error {
		tally, err := st.lab.Node().Spread(dial(to, protocol), 20)
		if err != nil {
			return err
		}
		if len(tally.Endpoints) != 2 || len(tally.Failed) > 0 {
			return fmt.Errorf("%s: %+v, want both endpoints", to, tally)
		}
		for peer := range tally.Peers {
			if peer.IsLoopback() {
				return fmt.Errorf("%s: the endpoint saw %s", to, peer)
			}
		}
		return nil
	})
}

// refused wants nobody to answer the node itself, at once, in the end.
func (st *localhost) refused(to string, protocol model.Protocol) {
	st.Helper()
	st.eventually(func() error {
		o, err := st.lab.Node().Dial(dial(to, protocol))
		if err == nil && o.Action != plan.Reject {
			err = fmt.Errorf("%s: %s, want that it is refused", to, o)
		}
		return err
	})
}

func (st *localhost) eventually(f func() error) {
	st.Helper()
	await.Until(st, 20*time.Millisecond, f)
}

func (st *localhost) served() {
	st.Helper()
	for _, to := range []string{"127.0.0.1", "[::1]"} {
		st.spread(to+":30080", model.TCP)
		st.spread(to+":30053", model.UDP)
		st.refused(to+":30081", model.TCP)
	}
}

// byRules wants rules to serve IPv4 alone, and nobody IPv6.
func (st *localhost) byRules() {
	st.Helper()
	st.refused("[::1]:30080", model.TCP)
	st.spread("127.0.0.1:30080", model.TCP)
	st.spread("127.0.0.1:30053", model.UDP)
}

// clients are connections of the node itself, which come all the time.
func (st *localhost) clients(to string) (end func()) {
	d := dial(to, model.TCP)
	d.Timeout = limit
	load := st.lab.Node().Load(d, time.Millisecond)
	return func() {
		st.Helper()
		tally, err := load.Stop()
		if err != nil || tally.Total == 0 || len(tally.Failed) > 0 {
			st.Errorf("%s: of %d connections failed %v, error %v; the first: %v", to, tally.Total, tally.Failed, err, tally.Failures)
		}
	}
}

// stay is a connection that lasts.
func (st *localhost) stay(to string) *lab.Conn {
	st.Helper()
	conn, o, err := st.lab.Node().Connect(dial(to, model.TCP))
	if st.must(err); conn == nil {
		st.Fatalf("%s: %s", to, o)
	}
	st.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (st *localhost) alive(conns ...*lab.Conn) {
	st.Helper()
	for _, c := range conns {
		if err := c.Echo("still there?"); err != nil {
			st.Error(err)
		}
	}
}

func (st *localhost) quiet(d *daemon.Daemon) {
	st.Helper()
	for _, line := range d.Complaints() {
		st.Errorf("the daemon complained: %s", line)
	}
}

// With the feature gate, the daemon's proxy serves node ports at the loopback addresses of both families. It follows the
// configuration while it runs: where rules serve loopback no client of IPv4 is refused on the way, and connections go on.
func TestLocalhostNodePortsByTheProxy(t *testing.T) {
	st := openLocalhost(t)
	st.configure("nftables", true)
	d := st.start()
	st.served()
	end := st.clients("127.0.0.1:30080")
	conns := []*lab.Conn{st.stay("127.0.0.1:30080"), st.stay("[::1]:30080")}
	for _, step := range []struct {
		mode string
		gate bool
	}{{"nftables", false}, {"nftables", true}, {"iptables", true}, {"nftables", true}} {
		st.configure(step.mode, step.gate)
		if step.mode == "nftables" && step.gate {
			st.served()
			conns = append(conns, st.stay("127.0.0.1:30080"), st.stay("[::1]:30080"))
		} else {
			st.byRules()
		}
		st.alive(conns...)
	}
	end()
	st.quiet(d)
}

// A daemon that takes the place of another one takes its sockets, too, so that nobody is refused at either family's
// loopback address.
func TestLocalhostNodePortsAreHandedOver(t *testing.T) {
	st := openLocalhost(t)
	st.configure("nftables", true)
	daemons := []*daemon.Daemon{st.start()}
	st.served()
	ends := []func(){st.clients("127.0.0.1:30080"), st.clients("[::1]:30080")}
	conn := st.stay("127.0.0.1:30080")
	for range 3 {
		d := st.start("--take-over", "--v=4")
		st.eventually(func() error {
			if text := d.Log(); !strings.Contains(text, "rules written") {
				return fmt.Errorf("the rules of the daemon after do not stand: %s", text)
			}
			return nil
		})
		daemons = append(daemons, d)
		st.served()
	}
	st.alive(conn)
	for _, end := range ends {
		end()
	}
	st.must(conn.Close()) // what the first daemon relays ends with it
	for _, d := range daemons[:len(daemons)-1] {
		st.quiet(d)
		if err := d.Wait(limit); err != nil {
			st.Errorf("a daemon that another one follows: %v\n%s", err, d.Log())
		}
	}
	st.quiet(daemons[len(daemons)-1])
}

// A node port that somebody else has is told of in the log, with its Service, and costs nobody else anything.
func TestLocalhostNodePortInUse(t *testing.T) {
	st := openLocalhost(t)
	server, err := st.lab.Node().Serve(model.TCP, netip.MustParseAddrPort("127.0.0.1:30080"))
	st.must(err)
	st.configure("nftables", true)
	d := st.start()
	st.spread("[::1]:30080", model.TCP)
	st.spread("127.0.0.1:30053", model.UDP)
	st.must(server.Close())
	st.configure("nftables", false)
	st.byRules()
	st.configure("nftables", true)
	st.served()
	complaints := d.Complaints()
	if len(complaints) != 1 || !strings.Contains(complaints[0], "default/web:http") || !strings.Contains(complaints[0], "address already in use") {
		t.Errorf("it complained %q, want once, of the Service", complaints)
	}
}
