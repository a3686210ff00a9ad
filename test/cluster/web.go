package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// web is a Service that tests of a proxy's life use.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
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

// Web makes the Service "web" of so many pods, and waits until they are ready.
func (c *Cluster) Web(t testing.TB, pods int) {
	t.Helper()
	c.Apply(t, fmt.Sprintf(web, pods))
	c.WaitPods(t, "default", "app=web", pods)
}

// User is who uses the Service "web" through a node.
type User struct {
	Name string
	Host *lab.Host
	Dial lab.Dial
}

// Users are one of each kind: a pod, the node itself, and a client outside.
func (c *Cluster) Users(t testing.TB, node string) []User {
	t.Helper()
	s, err := c.Client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	to := func(a netip.Addr, port uint16) lab.Dial {
		return lab.Dial{To: netip.AddrPortFrom(a, port), Protocol: model.TCP, Timeout: 10 * time.Second}
	}
	n, clusterIP := c.Node(t, node), netip.MustParseAddr(s.Spec.ClusterIP)
	return []User{
		{"a pod", n.Pods, to(clusterIP, 80)},
		{"the node", n.Host, to(clusterIP, 80)},
		{"an outside client", c.Clients(), to(n.Address(model.IPv4), 30080)},
	}
}

// WaitUsers waits until each kind of user has been answered by all pods.
func (c *Cluster) WaitUsers(t testing.TB, node string) {
	t.Helper()
	pods := strings.Fields(c.Kubectl(t, "", "get", "pods", "-l", "app=web", "-o", `jsonpath={range .items[*]}default/{.metadata.name} {end}`))
	for _, u := range c.Users(t, node) {
		c.WaitAnswers(t, u.Host, u.Dial, pods...)
	}
}

// UnderLoad does something while users of each kind connect all the time, more than a hundred times a second together,
// and each has a connection that stays. None of them may fail.
func (c *Cluster) UnderLoad(t testing.TB, node string, do func()) {
	t.Helper()
	loads, stays := map[string]*lab.Load{}, map[string]*lab.Conn{}
	for _, u := range c.Users(t, node) {
		conn, o, err := u.Host.Connect(u.Dial)
		if err != nil || o.Action != plan.Forward {
			t.Fatalf("%s: %v, %v", u.Name, o, err)
		}
		loads[u.Name], stays[u.Name] = u.Host.Load(u.Dial, 20*time.Millisecond), conn
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
