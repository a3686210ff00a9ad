package dropin_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: none, ports: [{containerPort: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
`

// start is a cluster with a Service of three pods.
func start(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	c := cluster.Start(t, o)
	c.Apply(t, objects)
	c.WaitPods(t, "default", "app=web", 3)
	return c
}

// client is who uses the Service through a node.
type client struct {
	name string
	host *lab.Host
	dial lab.Dial
}

// clients are one of each kind.
func clients(t *testing.T, c *cluster.Cluster, node string) []client {
	t.Helper()
	s, err := c.Client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	to := func(a netip.Addr, port uint16) lab.Dial {
		return lab.Dial{To: netip.AddrPortFrom(a, port), Protocol: model.TCP, Timeout: 10 * time.Second}
	}
	n, clusterIP := c.Node(t, node), netip.MustParseAddr(s.Spec.ClusterIP)
	return []client{
		{"a pod", n.Pods, to(clusterIP, 80)},
		{"the node", n.Host, to(clusterIP, 80)},
		{"an outside client", c.Clients(), to(n.Address(model.IPv4), 30080)},
	}
}

// allAnswer waits until each kind of client has been answered by all pods.
func allAnswer(t *testing.T, c *cluster.Cluster, node string) {
	t.Helper()
	pods := strings.Fields(c.Kubectl(t, "", "get", "pods", "-l", "app=web", "-o", `jsonpath={range .items[*]}default/{.metadata.name} {end}`))
	for _, client := range clients(t, c, node) {
		c.WaitAnswers(t, client.host, client.dial, pods...)
	}
}

// underLoad does something while clients of each kind connect all the time, and each has a connection that stays. None of
// them may fail.
func underLoad(t *testing.T, c *cluster.Cluster, node string, do func()) {
	t.Helper()
	loads, stays := map[string]*lab.Load{}, map[string]*lab.Conn{}
	for _, client := range clients(t, c, node) {
		conn, o, err := client.host.Connect(client.dial)
		if err != nil || o.Action != plan.Forward {
			t.Fatalf("%s: %v, %v", client.name, o, err)
		}
		loads[client.name], stays[client.name] = client.host.Load(client.dial, 20*time.Millisecond), conn
	}
	do()
	for name, conn := range stays {
		if err := errors.Join(conn.Echo("still here"), conn.Close()); err != nil {
			t.Errorf("a connection of %s did not last: %v", name, err)
		}
	}
	for name, load := range loads {
		tally, err := load.Stop()
		t.Logf("%s made %d connections", name, tally.Total)
		if err != nil || len(tally.Failed) > 0 || tally.Total == 0 {
			t.Errorf("of %d connections of %s: %v failed, %v", tally.Total, name, tally.Failed, err)
		}
	}
}

// alarms are the lines of a log that ask for somebody's attention, but for those about the machine, which in a namespace
// is not the proxy's to set.
func alarms(log string) (lines []string) {
	for line := range strings.Lines(log) {
		alarming := strings.HasPrefix(line, "warning:") || strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
		if alarming && !strings.Contains(line, `msg="the machine is not set up as asked"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// runsAs waits until a proxy is in sync and says that its mode is this.
func runsAs(t *testing.T, p *cluster.Proxy, mode string) {
	t.Helper()
	p.WaitSynced(t)
	if status, body, err := p.Get("10249", "/proxyMode"); err != nil || body != mode {
		t.Errorf("/proxyMode: %d %q, %v; want %s", status, body, err, mode)
	}
}
