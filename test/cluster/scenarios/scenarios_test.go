package scenarios

import (
	"slices"
	"testing"

	"sluice/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// Scenarios that only touch their own namespace run side by side, and are compared with a fresh start when all of them
// have ended. The others run one after the other.
func TestScenarios(t *testing.T) {
	all := loadAll(t)
	b := newBench(t)
	steady := b.steady(t)
	defer steady.end(t)
	t.Run("together", func(t *testing.T) {
		for _, s := range all[together] {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				b.play(t, s)
			})
		}
	})
	b.checkFresh(t)
	b.playEach(t, all[alone])
	if t.Failed() {
		return // and the nodes are as nobody knows
	}
	b.removeAll(t, append(all[together], all[alone]...))
	b.checkFresh(t)
	b.playEach(t, all[last])
}

// playEach runs scenarios one after the other until one fails, and compares with a fresh start after each.
func (b *bench) playEach(t *testing.T, all []scenario) {
	t.Helper()
	for _, s := range all {
		ok := t.Run(s.name, func(t *testing.T) {
			b.play(t, s)
			b.checkFresh(t)
		})
		if !ok {
			return
		}
	}
}

// bench is the cluster of all scenarios.
type bench struct {
	*cluster.Cluster
	proxies []*cluster.Proxy // one for each node
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Cluster: cluster.Start(t, cluster.Options{})}
	for _, node := range []struct{ name, mode string }{{"node-a", "nftables"}, {"node-b", "iptables"}} {
		b.proxies = append(b.proxies, b.StartSluice(t, node.name, cluster.ProxyOptions{Mode: node.mode}))
	}
	return b
}

// proxy is that of a node.
func (b *bench) proxy(t testing.TB, node string) *cluster.Proxy {
	t.Helper()
	i := slices.IndexFunc(b.proxies, func(p *cluster.Proxy) bool { return p.Node.Name == node })
	if i < 0 {
		t.Fatalf("there is no node %q", node)
	}
	return b.proxies[i]
}

// removeAll deletes the namespaces of all scenarios that ran.
func (b *bench) removeAll(t *testing.T, all []scenario) {
	t.Helper()
	args := []string{"delete", "namespace", "--ignore-not-found"}
	for _, s := range all {
		args = append(args, s.name)
	}
	b.Kubectl(t, "", args...)
}
