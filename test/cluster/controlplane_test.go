package cluster_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/test/cluster"
)

// Whatever happens to its parts, the cluster is the same again afterwards: its objects, its address, who may do what,
// and the pods that run.
func TestControlPlane(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, web)
	c.Kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=60s")
	before := strings.Join(podsOf(t, c, "app=web"), " ")
	for _, tt := range []struct {
		name string
		harm func(t *testing.T)
	}{
		{"the API server is killed", func(t *testing.T) { c.APIServer.Kill(t); c.APIServer.Start(t) }},
		{"the API server is stopped", func(t *testing.T) { c.APIServer.Stop(t); c.APIServer.Start(t) }},
		{"the API server is paused", func(t *testing.T) { c.APIServer.Pause(t); c.APIServer.Resume(t) }},
		{"etcd is killed", func(t *testing.T) { c.Etcd.Kill(t); c.Etcd.Start(t) }},
		{"the controllers are killed", func(t *testing.T) { c.Controllers.Kill(t); c.Controllers.Start(t) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.harm(t)
			c.WaitReady(t)
			if after := strings.Join(podsOf(t, c, "app=web"), " "); after != before {
				t.Errorf("the pods were %s and are %s", before, after)
			}
			c.Kubectl(t, "", "scale", "deployment/web", "--replicas=2")
			c.WaitPods(t, "default", "app=web", 2)
			c.Kubectl(t, "", "scale", "deployment/web", "--replicas=3")
			c.WaitPods(t, "default", "app=web", 3)
			before = strings.Join(podsOf(t, c, "app=web"), " ")
		})
	}
}

// After a compaction etcd tells nothing of older revisions.
func TestCompact(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: []cluster.NodeSpec{{Name: "node-a"}}})
	services := c.Client.CoreV1().Services("default")
	page, err := services.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "", "create", "service", "clusterip", "one", "--tcp=80")
	c.Kubectl(t, "", "create", "service", "clusterip", "two", "--tcp=80")
	if at := c.Compact(t); at == 0 {
		t.Error("the newest revision is 0")
	}
	c.APIServer.Kill(t) // what it keeps in memory goes further back
	c.APIServer.Start(t)
	c.WaitReady(t)
	_, err = services.List(t.Context(), metav1.ListOptions{ResourceVersion: page.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !errors.IsResourceExpired(err) {
		t.Errorf("a list as of before the compaction: %v", err)
	}
}

// The accounts of the proxies may do what they have to and no more.
func TestRights(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for _, tt := range []struct{ account, verb, what, want string }{
		{"kube-proxy", "watch", "endpointslices", "yes"},
		{"kube-proxy", "list", "secrets", "no"},
		{"sluice", "watch", "endpointslices", "yes"},
		{"sluice", "watch", "services", "yes"},
		{"sluice", "list", "secrets", "no"},
		{"sluice", "update", "nodes", "no"},
	} {
		out, _ := c.TryKubectl(t, "", "auth", "can-i", tt.verb, tt.what, "--as=system:serviceaccount:kube-system:"+tt.account)
		if lines := strings.Fields(out); len(lines) == 0 || lines[len(lines)-1] != tt.want {
			t.Errorf("may %s %s %s: %s, want %s", tt.account, tt.verb, tt.what, out, tt.want)
		}
	}
}

// A proxy may be stopped, killed and started again, and tells about itself meanwhile.
func TestProxyProcess(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: []cluster.NodeSpec{{Name: "node-a"}}})
	c.Apply(t, web)
	c.WaitPods(t, "default", "app=web", 3)
	p := c.StartKubeProxy(t, "node-a", cluster.ProxyOptions{Mode: "nftables", Config: "nftables: {minSyncPeriod: 0s}"})
	p.WaitSynced(t)
	nodePort := lab.Dial{To: prefixPort(t, p.Node.Address(model.IPv4), 30080), Protocol: model.TCP}
	c.WaitAnswers(t, c.Clients(), nodePort, podsOf(t, c, "app=web")...)
	u, err := p.Usage()
	if err != nil || u.CPU == 0 || u.RSS < 1<<20 || u.Peak < u.RSS {
		t.Errorf("usage %+v, %v", u, err)
	}
	if n := p.Metrics(t).Sum("kubeproxy_sync_proxy_rules_duration_seconds_count", `ip_family="IPv4"`); n == 0 {
		t.Error("no sync is counted")
	}
	p.Stop(t)
	if _, _, err := p.Healthz(); err == nil || p.Pid() != 0 {
		t.Error("it still runs")
	}
	p.Start(t)
	p.WaitSynced(t)
	p.Kill(t)
	p.Start(t)
	p.WaitSynced(t)
	c.WaitAnswers(t, c.Clients(), nodePort, podsOf(t, c, "app=web")...)
}
