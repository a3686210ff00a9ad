package cluster_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

const web = `
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
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports:
  - {name: tcp, port: 80, targetPort: 8080, protocol: TCP, nodePort: 30080}
  - {name: udp, port: 80, targetPort: 8080, protocol: UDP, nodePort: 30080}
`

// Upstream's kube-proxy works in this cluster, so that what Sluice does otherwise is not the cluster's fault.
func TestKubeProxy(t *testing.T) {
	start := time.Now()
	c := cluster.Start(t, cluster.Options{})
	t.Logf("the cluster is up after %s", time.Since(start).Round(time.Millisecond))
	proxies := []*cluster.Proxy{
		c.StartKubeProxy(t, "node-a", cluster.ProxyOptions{Mode: "nftables"}),
		c.StartKubeProxy(t, "node-b", cluster.ProxyOptions{Mode: "iptables"}),
	}
	c.Apply(t, web)
	c.Kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=60s")
	for _, p := range proxies {
		p.WaitSynced(t)
	}
	t.Logf("the proxies are in sync after %s", time.Since(start).Round(time.Millisecond))

	service, err := c.Client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"node-a", "node-b"} {
		for _, f := range []model.Family{model.IPv4, model.IPv6} {
			for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
				t.Run(fmt.Sprintf("%s/%s/%s", node, f, protocol), func(t *testing.T) { tryService(t, c, node, service, f, protocol) })
			}
		}
	}
}

// tryService asks the Service from a pod of a node, from the node, and from outside through it, until all three pods
// have answered each.
func tryService(t *testing.T, c *cluster.Cluster, node string, s *v1.Service, f model.Family, protocol model.Protocol) {
	n := c.Node(t, node)
	var clusterIP netip.AddrPort
	for _, ip := range s.Spec.ClusterIPs {
		if a := netip.MustParseAddr(ip); model.FamilyOf(a) == f {
			clusterIP = netip.AddrPortFrom(a, 80)
		}
	}
	nodePort := netip.AddrPortFrom(n.Address(f), 30080)
	for _, client := range []struct {
		name string
		host *lab.Host
		to   netip.AddrPort
	}{
		{"pod", n.Pods, clusterIP},
		{"node", n.Host, clusterIP},
		{"outside", c.Clients(), nodePort},
	} {
		c.WaitAnswers(t, client.host, lab.Dial{To: client.to, Protocol: protocol}, podsOf(t, c, "app=web")...)
		o := cluster.Dial(t, client.host, lab.Dial{To: client.to, Protocol: protocol})
		if o.Action != plan.Forward || !strings.HasPrefix(c.PodAt(o.Endpoint.Addr()), "default/web-") {
			t.Errorf("from %s: %s", client.name, o)
		}
	}
}

// podsOf lists pods ("namespace/name") by their labels.
func podsOf(t *testing.T, c *cluster.Cluster, selector string) (names []string) {
	t.Helper()
	list, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}
