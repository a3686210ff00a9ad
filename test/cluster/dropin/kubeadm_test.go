package dropin_test

import (
	"os"
	"strings"
	"testing"

	"sluice/test/cluster"
)

// kubeadmConfig is config.conf as kubeadm writes it.
const kubeadmConfig = "../../../internal/config/testdata/kubeadm.yaml"

// kubeadmKubeconfig is kubeconfig.conf beside it: the service account, and the API server's own address.
const kubeadmKubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: default
  cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: SERVER
contexts:
- name: default
  context: {cluster: default, namespace: default, user: default}
current-context: default
users:
- name: default
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
`

// The files and the command line that kubeadm gives kube-proxy start Sluice, with kube-proxy's rights.
func TestKubeadm(t *testing.T) {
	c := start(t, cluster.Options{AuditLog: true})
	text, err := os.ReadFile(kubeadmConfig)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := string(text)
	iptables := strings.Replace(unchanged, `mode: ""`, "mode: iptables", 1)
	for _, tt := range []struct{ name, config, mode string }{
		{"unchanged", unchanged, "nftables"},
		{"mode iptables", iptables, "iptables"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := newVolume(t, map[string]string{
				"config.conf":     tt.config,
				"kubeconfig.conf": strings.Replace(kubeadmKubeconfig, "SERVER", c.Config().Host, 1),
			})
			p := container{
				Args: []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=" + node},
				Env:  []string{"PATH=" + os.Getenv("PATH")},
				Mounts: append(imageWithIPTables(t),
					account(t, c, "kube-proxy"),
					mount{From: config.path, At: "/var/lib/kube-proxy"},
				),
			}.start(t, c, node)
			runsAs(t, p, tt.mode)
			c.WaitUsers(t, node)
			if lines := alarms(p.Log()); len(lines) > 0 {
				t.Errorf("it alarms:\n%s", strings.Join(lines, ""))
			}
		})
	}
	noneRefused(t, c, "kube-proxy")
}

// imageWithIPTables is what the second flavour of the image has beside the program; the node's own stand for it.
func imageWithIPTables(t *testing.T) (mounts []mount) {
	t.Helper()
	for _, path := range []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/lib", "/lib64", "/usr/lib", "/etc/alternatives"} {
		if _, err := os.Stat(path); err == nil {
			mounts = append(mounts, mount{From: path, At: path, ReadOnly: true})
		}
	}
	if len(mounts) == 0 {
		t.Fatal("there are no programs on this machine")
	}
	return mounts
}
