package dropin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/test/cluster"
)

// What kube-proxy does instead of running, and how it tells whether it could.
func TestErrands(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	t.Run("set the machine up", func(t *testing.T) { setUp(t, c) })
	t.Run("clean up", func(t *testing.T) { cleanUp(t, c) })
}

// header begins every configuration file.
const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

func setUp(t *testing.T, c *cluster.Cluster) {
	for _, tt := range []struct {
		name, node, config string
		wrong              string // no: it succeeds
		settings           map[string]string
	}{
		{
			name: "mode nftables", node: "node-a", config: "conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 26h}\n",
			settings: map[string]string{"net/netfilter/nf_conntrack_tcp_timeout_established": "93600", "net/ipv4/conf/all/route_localnet": "0"},
		},
		{
			name: "mode iptables", node: "node-b", config: "mode: iptables\nconntrack: {maxPerCore: 0, tcpCloseWaitTimeout: 2h}\n",
			settings: map[string]string{"net/netfilter/nf_conntrack_tcp_timeout_close_wait": "7200", "net/ipv4/conf/all/route_localnet": "1"},
		},
		{
			name: "what a namespace may not", node: "node-a", config: "conntrack: {maxPerCore: 1, min: 2000000000}\n",
			wrong: "settings of the machine that are not as asked: net.netfilter.nf_conntrack_max",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), configKey)
			if err := os.WriteFile(path, []byte(header+tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			n := c.Node(t, tt.node)
			_, err := n.TrySluice(t, "", "run", "--init-only", "--config", path)
			wants(t, err, tt.wrong)
			for key, want := range tt.settings {
				got, err := n.Command(t.Context(), "cat", "/proc/sys/"+key).Output()
				if err != nil || strings.TrimSpace(string(got)) != want {
					t.Errorf("%s is %q, %v; want %s", key, got, err, want)
				}
			}
		})
	}
}

func cleanUp(t *testing.T, c *cluster.Cluster) {
	p := c.StartSluice(t, node, cluster.ProxyOptions{Mode: "nftables"})
	p.WaitSynced(t)
	_, err := p.Node.TrySluice(t, "", "run", "--cleanup")
	wants(t, err, "running in this network namespace")
	p.Stop(t)
	for _, want := range []string{"table inet sluice", "nothing to remove"} {
		out, err := p.Node.TrySluice(t, "", "run", "--cleanup")
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("got %q, %v; want %s", out, err, want)
		}
	}
}

// wants wants a verb to have failed as a whole (exit status 1) with these words; none: to have succeeded.
func wants(t *testing.T, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Error(err)
	case words != "" && (err == nil || !strings.Contains(err.Error(), "exit status 1\n") || !strings.Contains(err.Error(), words)):
		t.Errorf("got %v, want exit status 1 and %q", err, words)
	}
}

// Where --init-only has set the machine up, a pod that may not do so finds everything as it is asked.
func TestSetUpBefore(t *testing.T) {
	c := start(t, cluster.Options{})
	r := render(t, c, "overlays/unprivileged")
	text := r.config.Data[configKey]
	text = replaced(t, text, "tcpEstablishedTimeout: 0s", "tcpEstablishedTimeout: 26h")
	r.config.Data[configKey] = replaced(t, text, "tcpCloseWaitTimeout: 0s", "tcpCloseWaitTimeout: 2h")
	made, config := r.container(t, c, node)
	_, err := c.Node(t, node).TrySluice(t, "", "run", "--init-only", "--config", filepath.Join(config.path, configKey))
	wants(t, err, "")
	p := made.start(t, c, node)
	runsAs(t, p, "nftables")
	if log := p.Log(); strings.Contains(log, "nf_conntrack") {
		t.Errorf("it is not content with the machine:\n%s", log)
	}
}
