package cluster_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

func prefixPort(t *testing.T, a netip.Addr, port uint16) netip.AddrPort {
	t.Helper()
	if !a.IsValid() {
		t.Fatal("there is no such address")
	}
	return netip.AddrPortFrom(a, port)
}

// A pod is reached at its address from its first moment to its last, and the API tells what becomes of it.
func TestPods(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, web)
	c.WaitPods(t, "default", "app=web", 3)
	pods := podsOf(t, c, "app=web")
	t.Run("every pod answers, as itself", func(t *testing.T) { answer(t, c, pods) })
	name := strings.TrimPrefix(pods[0], "default/")
	t.Run("readiness", func(t *testing.T) {
		for _, ready := range []bool{false, true} {
			c.SetReady(t, "default", name, ready)
			cluster.WaitFor(t, "the endpoint to follow", func() error { return endpointIs(t, c, name, ready, false) })
		}
	})
	t.Run("deletion", func(t *testing.T) {
		p := c.Pod(t, "default", name)
		c.SetLinger(t, "default", name, 3*time.Second)
		c.Kubectl(t, "", "delete", "pod", name, "--wait=false")
		cluster.WaitFor(t, "the endpoint to be terminating", func() error { return endpointIs(t, c, name, false, true) })
		to := lab.Dial{To: prefixPort(t, p.Address(model.IPv4), 8080), Protocol: model.TCP}
		if o := cluster.Dial(t, c.Clients(), to); o.Action != plan.Forward {
			t.Errorf("a pod that is being deleted: %s", o)
		}
		c.WaitPods(t, "default", "app=web", 3)
		c.WaitAnswers(t, c.Clients(), to)
		if slices.Contains(podsOf(t, c, "app=web"), pods[0]) {
			t.Error("the pod is still there")
		}
	})
}

// answer dials every pod from every other, in both families and by both protocols.
func answer(t *testing.T, c *cluster.Cluster, pods []string) {
	for i, key := range pods {
		to, from := podOf(t, c, key), podOf(t, c, pods[(i+1)%len(pods)])
		for _, a := range to.Addrs {
			for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
				o := from.Dial(t, lab.Dial{To: netip.AddrPortFrom(a, 8080), Protocol: protocol})
				if o.Action != plan.Forward || c.PodAt(o.Endpoint.Addr()) != key || !slices.Contains(from.Addrs, o.Peer.Addr()) {
					t.Errorf("%s (%s) over %s: %s", key, a, protocol, o)
				}
			}
		}
	}
}

func podOf(t *testing.T, c *cluster.Cluster, key string) cluster.Pod {
	t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	return c.Pod(t, namespace, name)
}

// endpointIs says what is wrong with the conditions of a pod's endpoints.
func endpointIs(t *testing.T, c *cluster.Cluster, pod string, ready, terminating bool) error {
	t.Helper()
	list, err := c.Client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=web"})
	if err != nil {
		return err
	}
	found := false
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef == nil || e.TargetRef.Name != pod {
				continue
			}
			found = true
			if *e.Conditions.Ready != ready || *e.Conditions.Terminating != terminating {
				return fmt.Errorf("its endpoint is ready %t, terminating %t", *e.Conditions.Ready, *e.Conditions.Terminating)
			}
		}
	}
	if !found {
		return fmt.Errorf("pod %s has no endpoint", pod)
	}
	return nil
}

const agents = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      containers: [{name: agent, image: none, ports: [{containerPort: 9100}]}]
`

// A DaemonSet has one pod a node, and those of the host's network have the node's addresses.
func TestDaemonSet(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, agents)
	c.WaitPods(t, "default", "app=agent", 2)
	for _, name := range []string{"node-a", "node-b"} {
		for _, a := range c.Node(t, name).Addresses {
			o := cluster.Dial(t, c.Clients(), lab.Dial{To: netip.AddrPortFrom(a, 9100), Protocol: model.TCP})
			if o.Action != plan.Forward {
				t.Errorf("the agent of %s at %s: %s", name, a, o)
			}
		}
	}
}

// A node's new address works, and the API tells it.
func TestSetNodeAddresses(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: []cluster.NodeSpec{{Name: "node-a"}}})
	c.Apply(t, agents)
	c.WaitPods(t, "default", "app=agent", 1)
	c.SetNodeAddresses(t, "node-a", "192.168.10.77", "fd00:10::77")
	node, err := c.Client.CoreV1().Nodes().Get(t.Context(), "node-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(node.Status.Addresses); got != "[{Hostname node-a} {InternalIP 192.168.10.77} {InternalIP fd00:10::77}]" {
		t.Errorf("the node's addresses are %s", got)
	}
	n := c.Node(t, "node-a")
	if _, err := n.ServeAll(model.TCP, 9999); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"192.168.10.77:9999", "[fd00:10::77]:9999"} {
		if o := cluster.Dial(t, c.Clients(), lab.Dial{To: netip.MustParseAddrPort(to), Protocol: model.TCP}); o.Action != plan.Forward {
			t.Errorf("%s: %s", to, o)
		}
	}
}

// Nothing of a cluster is left in the test program when its test has ended.
func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("cluster", func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{})
		c.Apply(t, web)
		c.WaitPods(t, "default", "app=web", 3)
	})
	goleak.VerifyNone(t, before)
}

// Many pods are no matter of minutes.
func TestManyPods(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, web)
	start := time.Now()
	c.Kubectl(t, "", "scale", "deployment/web", "--replicas=200")
	c.WaitPods(t, "default", "app=web", 200)
	t.Logf("200 pods are ready after %s", time.Since(start).Round(time.Millisecond))
	c.Kubectl(t, "", "scale", "deployment/web", "--replicas=0")
	c.WaitPods(t, "default", "app=web", 0)
	t.Logf("and gone after %s", time.Since(start).Round(time.Millisecond))
}
