package moves

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/backend/ipvs"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/status"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

// limit is how long anything may take to come true; a test that passes never waits for it.
const limit = 60 * time.Second

// objects are Services that clients of every kind use. No two of them have an endpoint in common: ipvs tells what a client has
// open there apart by the client's port alone, so that a connection by way of one Service would now and then break one by
// way of another, whether the mode changes or not.
const objects = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  ipFamilyPolicy: PreferDualStack
  clusterIPs: [10.96.0.10, "fd00:96::10"]
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30080}]
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec:
  clusterIP: 10.96.0.12
  sessionAffinity: ClientIP
  ports: [{name: http, port: 80, targetPort: 8082}]
---
apiVersion: v1
kind: Service
metadata: {name: local}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.13
  externalTrafficPolicy: Local
  ports: [{name: http, port: 80, targetPort: 8083, nodePort: 30081}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.13}]}}
---
apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  type: NodePort
  clusterIP: 10.96.0.11
  ports: [{name: dns, port: 53, protocol: UDP, targetPort: 8081, nodePort: 30053}]
`

// slice gives a Service an endpoint on each of the two nodes.
const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]d, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv%[2]d
ports: [{name: %[3]s, port: %[4]d, protocol: %[5]s}]
endpoints: [{addresses: ["%[6]s"], nodeName: node-a}, {addresses: ["%[7]s"], nodeName: node-b}]
---
`

func manifests() string {
	text := scenario.Nodes + "---" + objects + "---"
	for service, port := range map[string]int{"web": 8080, "sticky": 8082, "local": 8083} {
		text += fmt.Sprintf(slice, service, 4, "http", port, "TCP", "10.244.1.5", "10.244.2.5")
	}
	text += fmt.Sprintf(slice, "web", 6, "http", 8080, "TCP", "fd00:244:0:1::5", "fd00:244:0:2::5")
	return text + fmt.Sprintf(slice, "dns", 4, "dns", 8081, "UDP", "10.244.1.5", "10.244.2.5")
}

// users are one of each kind of client for each kind of address.
var users = []struct {
	from, to string
	protocol model.Protocol
}{
	{"pods-a", "10.96.0.10:80", model.TCP},
	{"pods-a", "[fd00:96::10]:80", model.TCP},
	{"node-a", "10.96.0.10:80", model.TCP},
	{"clients", "192.168.10.11:30080", model.TCP},
	{"pods-a", "10.96.0.12:80", model.TCP},
	{"clients", "192.0.2.13:80", model.TCP},
	{"pods-a", "192.0.2.13:80", model.TCP},
	{"pods-a", "10.96.0.11:53", model.UDP},
	{"clients", "192.168.10.11:30053", model.UDP},
}

// stage is a lab whose node daemons work on, and clients.
type stage struct {
	*testing.T
	lab   *lab.Lab
	file  string
	loads []*lab.Load
	// stays are connections that were opened in one mode and last through those after it.
	stays map[string]*lab.Conn
	load
	total, lost, broken int
}

// load is how clients come, how many of a thousand new connections may be lost, and how many of those that last.
type load struct {
	pause, patience time.Duration
	mayBeLost       int
	mayBreak        int
}

// full is a load that loses nothing.
var full = load{pause: 3 * time.Millisecond, patience: limit}

// gentle is one for ipvs on Linux 6.1. ipvs remembers a connection for some time after its end, and then has connection
// tracking forget whatever has its port by then; so clients must not come by the same ports so soon. And a packet or two
// of thousands sees neither table of that kernel while one takes the place of another, as tests of mode nftables count. In
// an emulated machine an answer may be late, too.
var gentle = load{pause: 30 * time.Millisecond, patience: 10 * time.Second, mayBeLost: 1, mayBreak: 1}

func open(t *testing.T) *stage {
	t.Helper()
	nstest.Require(t)
	st := &stage{T: t, lab: scenario.Up(t, lab.Reference()), file: filepath.Join(t.TempDir(), "services.yaml"), stays: map[string]*lab.Conn{}, load: full}
	if nstest.HasIPVS(t) {
		st.load = gentle
	}
	for _, pods := range []string{"pods-a", "pods-b"} {
		for port, protocol := range map[uint16]model.Protocol{8080: model.TCP, 8081: model.UDP, 8082: model.TCP, 8083: model.TCP} {
			_, err := st.lab.Host(pods).ServeAll(protocol, port)
			st.must(err)
		}
	}
	st.must(os.WriteFile(st.file, []byte(manifests()), 0o600))
	t.Cleanup(st.end)
	return st
}

// flags are those of every verb.
func (st *stage) flags() []string {
	return append([]string{"--manifests", st.file}, scenario.Reference()...)
}

func (st *stage) start(args ...string) *daemon.Daemon {
	st.Helper()
	return daemon.Start(st, st.lab.Node(), slices.Concat(st.flags(), args, []string{"--v=2"})...)
}

// sluice runs a verb on the node.
func (st *stage) sluice(args ...string) (string, error) {
	out, err := daemon.Command(st.lab.Node(), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("sluice %v: %w\n%s", args, err, out)
	}
	return string(out), err
}

// waitFor waits until the rules of a mode stand, and nothing in the kernel differs from them.
func (st *stage) waitFor(mode string) {
	st.Helper()
	st.eventually(func() error {
		text, err := st.sluice("status", "-o", "json")
		if err != nil {
			return err
		}
		var r status.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return err
		}
		if r.Mode != mode || !r.Healthy || r.Applied == nil {
			return fmt.Errorf("%w: %s, healthy: %t", errMode, r.Mode, r.Healthy)
		}
		_, err = st.sluice(slices.Concat([]string{"diff", "--mode", mode}, st.flags())...)
		return err
	})
}

// begin has all clients start.
func (st *stage) begin() {
	st.Helper()
	for _, u := range users {
		d := lab.Dial{To: netip.MustParseAddrPort(u.to), Protocol: u.protocol, Timeout: st.patience}
		st.loads = append(st.loads, st.lab.Host(u.from).Load(d, st.pause))
	}
	st.stay("the first mode")
}

// stay opens connections that last.
func (st *stage) stay(since string) {
	st.Helper()
	for _, u := range users {
		if u.protocol != model.TCP {
			continue
		}
		conn, o, err := st.lab.Host(u.from).Connect(lab.Dial{To: netip.MustParseAddrPort(u.to), Protocol: u.protocol, Timeout: limit})
		if st.must(err); conn == nil {
			st.Fatalf("since %s: from %s to %s: %s", since, u.from, u.to, o)
		}
		st.stays[fmt.Sprintf("since %s, from %s to %s", since, u.from, u.to)] = conn
	}
}

// after looks what a move has cost.
func (st *stage) after(move string) {
	st.Helper()
	st.flow(move)
	time.Sleep(100 * time.Millisecond) // for what comes late to do its harm
	for i, l := range st.loads {
		tally, err := l.Tally()
		st.count(tally)
		if err != nil || len(tally.Failed) > 0 {
			st.complainOf(err, "%s: %s to %s: of %d connections failed %v, error %v; the first: %v", move, users[i].from, users[i].to, tally.Total, tally.Failed, err, tally.Failures)
		}
	}
	st.echo(move)
	st.stay(move)
}

// echo tries the connections that last.
func (st *stage) echo(move string) {
	st.Helper()
	for which, conn := range st.stays {
		if err := conn.Echo("still there?"); err != nil {
			st.complainOf(nil, "%s: a connection %s: %v", move, which, err)
			_ = conn.Close()
			delete(st.stays, which)
			st.broken++
		}
	}
}

// hangUp closes the connections that were opened in a mode.
func (st *stage) hangUp(since string) {
	for which, conn := range st.stays {
		if strings.HasPrefix(which, "since "+since+",") {
			_ = conn.Close()
			delete(st.stays, which)
		}
	}
}

var errLeft = errors.New("mode ipvs has left something")

// noAddress tells whether an interface has a cluster IP still.
func (st *stage) noAddress() error {
	out, err := st.lab.Node().Command(st.Context(), "ip", "address", "show", "to", "10.96.0.10").CombinedOutput()
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("%w: %s", errLeft, out)
	}
	return err
}

// noDevice tells whether the device of virtual servers is there still.
func (st *stage) noDevice() error {
	if err := st.lab.Node().Command(st.Context(), "ip", "link", "show", "dev", ipvs.DeviceName).Run(); err == nil {
		return fmt.Errorf("%w: %s", errLeft, ipvs.DeviceName)
	}
	return nil
}

func (st *stage) count(t lab.Tally) {
	st.total += t.Total
	st.lost += t.Total - t.Forwarded()
}

// complainOf tells of connections that failed, which is an error unless some may.
func (st *stage) complainOf(err error, format string, args ...any) {
	st.Helper()
	if err != nil || st.mayBeLost == 0 {
		st.Errorf(format, args...)
	} else {
		st.Logf(format, args...)
	}
}

// flow sends a datagram from a port that has sent some before each move: it arrives in the end, wherever the flow went.
func (st *stage) flow(move string) {
	st.Helper()
	d := lab.Dial{
		From: netip.MustParseAddr("10.244.1.250"), FromPort: 20000, To: netip.MustParseAddrPort("10.96.0.11:53"),
		Protocol: model.UDP, Timeout: time.Second,
	}
	st.eventually(func() error {
		o, err := st.lab.Host("pods-a").Dial(d)
		if err == nil && o.Action != plan.Forward {
			err = fmt.Errorf("%s: a flow that goes on: %s", move, o)
		}
		return err
	})
}

// end has all clients stop.
func (st *stage) end() {
	for _, l := range st.loads {
		tally, _ := l.Stop()
		st.count(tally)
	}
	if st.lost > st.total*st.mayBeLost/1000 {
		st.Errorf("%d of %d connections were lost", st.lost, st.total)
	}
	if st.broken > st.mayBreak {
		st.Errorf("%d of those that lasted broke", st.broken)
	}
	for _, conn := range st.stays {
		_ = conn.Close()
	}
	if len(st.loads) > 0 {
		st.Logf("%d connections, %d of them lost, and %d that lasted", st.total, st.lost, len(st.stays))
	}
	st.loads, st.stays = nil, nil
}

// complain tells of errors that a daemon logged.
func (st *stage) complain(d *daemon.Daemon) {
	st.Helper()
	for _, complaint := range d.Complaints() {
		st.Errorf("a daemon complained: %s", complaint)
	}
}

// eventually tries until f is content.
func (st *stage) eventually(f func() error) {
	st.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	st.Fatalf("after %s: %v", limit, err)
}

func (st *stage) must(err error) {
	st.Helper()
	if err != nil {
		st.Fatal(err)
	}
}
