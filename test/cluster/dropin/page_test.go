package dropin_test

import (
	"os"
	"strings"
	"testing"

	"sluice/test/cluster"
)

const page = "../../../docs/replacing-kube-proxy.md"

// kubeadmObjects are kube-proxy's as kubeadm makes them, as far as the page's commands touch them.
const kubeadmObjects = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system, labels: {k8s-app: kube-proxy}}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy}}
  updateStrategy: {type: RollingUpdate}
  template:
    metadata: {labels: {k8s-app: kube-proxy}}
    spec:
      serviceAccountName: kube-proxy
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      tolerations: [{operator: Exists}]
      containers:
      - name: kube-proxy
        image: registry.k8s.io/kube-proxy:v1.37.2
        command: [/usr/local/bin/kube-proxy, --config=/var/lib/kube-proxy/config.conf, --hostname-override=$(NODE_NAME)]
`

// The commands of the page do what it says, as far as the API server and Sluice itself do it.
func TestPage(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, kubeadmObjects)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	there, back, fromIPTables := blocks(t, string(text), "kubeadm"), blocks(t, string(text), "And back"), blocks(t, string(text), "And back, from iptables to nftables")

	if out := c.Shell(t, there[0]); !strings.HasPrefix(out, "registry.k8s.io/kube-proxy:v1.37.2") || !strings.Contains(out, "successfully rolled out") {
		t.Errorf("to Sluice: %s", out)
	}
	if got := image(t, c); !strings.HasPrefix(got, "registry.example/sluice:") {
		t.Errorf("the DaemonSet has %s", got)
	}
	if out := c.Shell(t, back[0]); !strings.Contains(out, "successfully rolled out") || image(t, c) != "registry.k8s.io/kube-proxy:v1.37.2" {
		t.Errorf("and back: %s", out)
	}
	if verb := "sluice cleanup --keep-kube-proxy\n"; !strings.Contains(back[1], verb) {
		t.Errorf("no %sin:\n%s", verb, back[1])
	}
	c.Sluice(t, node, "cleanup", "--keep-kube-proxy")

	c.Kubectl(t, render(t, c, "overlays/iptables").configMap(t), "create", "-f", "-")
	c.Shell(t, fromIPTables[0])
	if now := c.Kubectl(t, "", "-n", "kube-system", "get", "configmap", "sluice", "-o", `jsonpath={.data.config\.conf}`); !strings.Contains(now, "\nmode: nftables\n") {
		t.Errorf("the configuration is now:\n%s", now)
	}
}

// image is the one that kube-proxy's DaemonSet has.
func image(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	return c.Kubectl(t, "", "-n", "kube-system", "get", "daemonset", "kube-proxy", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
}

// blocks are the shell commands below a heading.
func blocks(t *testing.T, text, heading string) (all []string) {
	t.Helper()
	_, section, ok := strings.Cut(text, "# "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n##")
	for _, after := range strings.Split(section, "```sh\n")[1:] {
		block, _, _ := strings.Cut(after, "```")
		all = append(all, block)
	}
	if len(all) == 0 {
		t.Fatalf("no commands below %q", heading)
	}
	return all
}
