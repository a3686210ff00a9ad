package swap_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// kube-proxy → Sluice → kube-proxy, in every pair of modes.
func TestSwap(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Web(t, 4)
	for _, upstream := range []string{"nftables", "iptables"} {
		for _, mode := range []string{"nftables", "iptables"} {
			t.Run(upstream+" to "+mode+" and back", func(t *testing.T) { swap(t, c, upstream, mode) })
		}
	}
}

func swap(t *testing.T, c *cluster.Cluster, upstream, mode string) {
	const node = "node-a"
	kubeProxy := c.StartKubeProxy(t, node, cluster.ProxyOptions{Mode: upstream})
	kubeProxy.WaitSynced(t)
	c.WaitUsers(t, node)
	c.UnderLoad(t, node, func() {
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
	})
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
