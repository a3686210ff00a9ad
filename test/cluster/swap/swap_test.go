package swap_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
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

// pause is that of a client between two connections. The four clients make a hundred a second together.
const pause = 40 * time.Millisecond

// kube-proxy → Sluice → kube-proxy, in every pair of modes.
func TestSwap(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, objects)
	c.Kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=60s")
	for _, upstream := range []string{"nftables", "iptables"} {
		for _, mode := range []string{"nftables", "iptables"} {
			t.Run(upstream+" to "+mode+" and back", func(t *testing.T) { swap(t, c, upstream, mode) })
		}
	}
}

func swap(t *testing.T, c *cluster.Cluster, upstream, mode string) {
	const node = "node-a"
	n := c.Node(t, node)
	kubeProxy := c.StartKubeProxy(t, node, cluster.ProxyOptions{Mode: upstream})
	kubeProxy.WaitSynced(t)
	to := serviceOf(t, c)
	clients := map[string]client{
		"a pod":           {n.Pods, netip.AddrPortFrom(to, 80)},
		"the node":        {n.Host, netip.AddrPortFrom(to, 80)},
		"a client of it":  {c.Clients(), netip.AddrPortFrom(n.Address(model.IPv4), 30080)},
		"another of them": {c.Clients(), netip.AddrPortFrom(n.Address(model.IPv4), 30080)},
	}
	for name, client := range clients {
		c.WaitAnswers(t, client.host, client.dial(), podsOf(t, c)...)
		load, conn := client.host.Load(client.dial(), pause), client.connect(t)
		defer func() { noneFailed(t, name, load); stillOpen(t, name, conn) }()
	}

	kubeProxy.Stop(t)
	sluice := c.StartSluice(t, node, cluster.ProxyOptions{Mode: mode})
	sluice.WaitSynced(t)
	waitGone(t, c, node, "table ip kube-proxy")
	if mode == "nftables" {
		waitGone(t, c, node, serviceChain)
	}
	time.Sleep(while)

	if upstream == "nftables" && mode == "iptables" {
		// kube-proxy in mode nftables removes chains of iptables before it has written anything, whoever made them.
		changeMode(t, sluice, mode, upstream)
		waitGone(t, c, node, serviceChain)
	}
	sluice.Stop(t)
	kubeProxy.Start(t)
	kubeProxy.WaitSynced(t)
	t.Log(c.Sluice(t, node, "cleanup", "--keep-kube-proxy"))
	waitGone(t, c, node, "table inet sluice")
	time.Sleep(while)
	kubeProxy.Stop(t)
}

// changeMode edits the configuration file of a proxy that runs.
func changeMode(t *testing.T, p *cluster.Proxy, from, to string) {
	t.Helper()
	text, err := os.ReadFile(p.Config)
	if err == nil {
		err = os.WriteFile(p.Config, bytes.Replace(text, []byte("mode: "+from), []byte("mode: "+to), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serviceChain begins the names of chains of iptables, whose nf_tables variant is what nft lists.
const serviceChain = "chain KUBE-SVC-"

// while is how long clients go on to find out what was lost.
const while = 2 * time.Second

// waitGone waits until a node has nothing of what a text stands for.
func waitGone(t *testing.T, c *cluster.Cluster, node, text string) {
	t.Helper()
	cluster.WaitFor(t, text+" to be gone", func() error {
		ruleset, err := c.Node(t, node).Command(t.Context(), "nft", "list", "ruleset").Output()
		if err == nil && strings.Contains(string(ruleset), text) {
			err = errors.New("it is there")
		}
		return err
	})
}

func serviceOf(t *testing.T, c *cluster.Cluster) netip.Addr {
	t.Helper()
	s, err := c.Client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddr(s.Spec.ClusterIP)
}

func podsOf(t *testing.T, c *cluster.Cluster) (names []string) {
	t.Helper()
	list, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

// client is who uses the node.
type client struct {
	host *lab.Host
	to   netip.AddrPort
}

func (c client) dial() lab.Dial {
	return lab.Dial{To: c.to, Protocol: model.TCP, Timeout: 10 * time.Second}
}

// connect opens a connection that stays.
func (c client) connect(t *testing.T) *lab.Conn {
	t.Helper()
	conn, o, err := c.host.Connect(c.dial())
	if err != nil || o.Action != plan.Forward {
		t.Fatalf("%v, %v", o, err)
	}
	return conn
}

func stillOpen(t *testing.T, name string, conn *lab.Conn) {
	t.Helper()
	if err := conn.Echo("still here"); err != nil {
		t.Errorf("a connection of %s did not last: %v", name, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func noneFailed(t *testing.T, name string, load *lab.Load) {
	t.Helper()
	tally, err := load.Stop()
	t.Logf("%s made %d connections", name, tally.Total)
	if err != nil || len(tally.Failed) > 0 || tally.Total == 0 {
		t.Errorf("of %d connections of %s: %v failed, %v", tally.Total, name, tally.Failed, err)
	}
}
