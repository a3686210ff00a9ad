package ipvs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/await"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

// limit is how long a connection may take.
const limit = await.Limit

// Ports that every pod serves.
const (
	podTCP = 8080
	podUDP = 8081
)

func TestMain(m *testing.M) { daemon.Main(m, cli.Main) }

// service is a Service with endpoints that are pods on this node and another.
type service struct {
	name, ip string
	port     uint16
	protocol model.Protocol
	// annotations are "name: value".
	annotations []string
	nodePort    uint16 // 0: none
	endpoints   []netip.Addr
}

const serviceObject = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s, annotations: {%[2]s}}
spec: {type: %[3]s, clusterIP: %[4]s, ports: [{name: p, port: %[5]d, protocol: %[6]s%[7]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: p, port: %[8]d, protocol: %[6]s}]
endpoints: [%[9]s]
---`

func (s *service) yaml() string {
	kind, nodePort := "ClusterIP", ""
	if s.nodePort != 0 {
		kind, nodePort = "NodePort", fmt.Sprintf(", nodePort: %d", s.nodePort)
	}
	var endpoints []string
	for _, e := range s.endpoints {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], targetRef: {kind: Pod, name: pod-%s}}", e, lastNumber(e)))
	}
	return fmt.Sprintf(
		serviceObject, s.name, strings.Join(s.annotations, ", "), kind, s.ip, s.port, s.protocol, nodePort,
		s.podPort(), strings.Join(endpoints, ", "),
	)
}

// lastNumber names the pod of an address.
func lastNumber(a netip.Addr) string { return fmt.Sprint(a.As4()[3]) }

func (s *service) podPort() uint16 {
	if s.protocol == model.UDP {
		return podUDP
	}
	return podTCP
}

// at is the cluster IP and port.
func (s *service) at() netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(s.ip), s.port) }

// dial asks the Service from a pod.
func (s *service) dial() lab.Dial {
	return lab.Dial{From: netip.MustParseAddr("10.244.1.250"), To: s.at(), Protocol: s.protocol, Timeout: limit}
}

// server is its virtual server.
func (s *service) server() ipvs.Name {
	protocol := ipvs.TCP
	if s.protocol == model.UDP {
		protocol = ipvs.UDP
	}
	return ipvs.Name{Addr: s.at().Addr(), Protocol: protocol, Port: s.port}
}

// pod is one of the pods, on this node and on another in turn.
func pod(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(1 + n%2), byte(10 + n)}) }

func pods(from, to int) (all []netip.Addr) {
	for n := from; n < to; n++ {
		all = append(all, pod(n))
	}
	return all
}

// stage is a lab whose node daemons work on.
type stage struct {
	*testing.T
	lab      *lab.Lab
	pods     *lab.Host
	kernel   *ipvs.Handle // of the node
	file     string
	services []*service
}

func open(t *testing.T, services ...*service) *stage {
	t.Helper()
	nstest.RequireIPVS(t)
	st := &stage{T: t, lab: scenario.Up(t, lab.Reference()), file: filepath.Join(t.TempDir(), "services.yaml"), services: services}
	st.pods = st.lab.Host("pods-a")
	for _, pods := range []string{"pods-a", "pods-b"} {
		for protocol, port := range map[model.Protocol]uint16{model.TCP: podTCP, model.UDP: podUDP} {
			_, err := st.lab.Host(pods).ServeAll(protocol, port)
			st.must(err)
		}
	}
	st.must(st.lab.Node().Do(func() (err error) { st.kernel, err = ipvs.Open(); return err }))
	t.Cleanup(func() { _ = st.kernel.Close() })
	st.write()
	return st
}

// write has the daemon read the Services of now.
func (st *stage) write() {
	st.Helper()
	var text strings.Builder
	text.WriteString(scenario.Nodes + "---")
	for _, s := range st.services {
		text.WriteString(s.yaml())
	}
	st.must(os.WriteFile(st.file+".new", []byte(text.String()), 0o600))
	st.must(os.Rename(st.file+".new", st.file))
}

// flags are those of every verb.
func (st *stage) flags(more ...string) []string {
	return slices.Concat([]string{"--mode=ipvs", "--manifests", st.file}, scenario.Reference(), more)
}

// start starts a daemon and waits until the kernel is as it should be.
func (st *stage) start(flags ...string) *daemon.Daemon {
	st.Helper()
	d := daemon.Start(st, st.lab.Node(), st.flags(flags...)...)
	st.settle(flags...)
	return d
}

// settle waits until nothing in the kernel differs from the manifests.
func (st *stage) settle(flags ...string) {
	st.Helper()
	st.eventually(func() error {
		_, err := st.sluice(append([]string{"diff"}, st.flags(flags...)...)...)
		return err
	})
}

// sluice runs a verb on the node.
func (st *stage) sluice(args ...string) (string, error) {
	return daemon.Run(st.lab.Node(), args...)
}

// spread opens connections to a Service, one after the other, and counts where they arrive.
func (st *stage) spread(s *service, n int) map[netip.Addr]int {
	st.Helper()
	tally, err := st.pods.Spread(s.dial(), n)
	st.must(err)
	if len(tally.Failures) > 0 {
		st.Fatalf("%s: %v", s.name, tally.Failures)
	}
	at := map[netip.Addr]int{}
	for endpoint, count := range tally.Endpoints {
		at[endpoint.Addr()] += count
	}
	return at
}

// connect opens a connection that stays, and tells where it arrived.
func (st *stage) connect(s *service) (*lab.Conn, netip.Addr) {
	st.Helper()
	conn, o, err := st.pods.Connect(s.dial())
	st.must(err)
	if conn == nil {
		st.Fatalf("%s: %s", s.name, o)
	}
	return conn, o.Endpoint.Addr()
}

// arrives is where a datagram goes that follows others from the same port.
func (st *stage) arrives(s *service, port uint16) (netip.Addr, error) {
	d := s.dial()
	d.FromPort, d.Timeout = port, time.Second
	o, err := st.pods.Dial(d)
	if err == nil && o.Action != plan.Forward {
		err = fmt.Errorf("%s: a datagram from port %d: %s", s.name, port, o)
	}
	return o.Endpoint.Addr(), err
}

// destination is an endpoint of a Service as the kernel has it; ok is false if it has not.
func (st *stage) destination(s *service, endpoint netip.Addr) (d ipvs.FoundDestination, ok bool) {
	st.Helper()
	all, err := st.kernel.Destinations(s.server())
	st.must(err)
	at := slices.IndexFunc(all, func(d ipvs.FoundDestination) bool { return d.Addr() == endpoint })
	if at < 0 {
		return d, false
	}
	return all[at], true
}

// eventually tries until f is content.
func (st *stage) eventually(f func() error) {
	st.Helper()
	await.Until(st, 10*time.Millisecond, f)
}

func (st *stage) must(err error) {
	st.Helper()
	if err != nil {
		st.Fatal(err)
	}
}
