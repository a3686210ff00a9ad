package cases

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// load reads a KubeProxyConfiguration without its first two lines.
func load(t *testing.T, fields string) (config.Config, []string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n" + fields
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set := pflag.NewFlagSet("cases", pflag.ContinueOnError)
	flags := config.NewFlags(set)
	if err := set.Parse([]string{"--config=" + file}); err != nil {
		t.Fatal(err)
	}
	return flags.Load()
}

// An address without a prefix length and a length that is too long are both refused, in one go.
func TestEveryWrongNodePortAddressIsNamed(t *testing.T) {
	_, _, err := load(t, "clusterCIDR: 10.244.0.0/16\nnodePortAddresses: [\"192.168.10.11\", \"192.168.0.0/33\"]\n")
	if err == nil {
		t.Fatal("the configuration was accepted")
	}
	for _, want := range []string{"192.168.10.11", "192.168.0.0/33", "nodePortAddresses"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

// A list that says nothing of a family opens all of it, so it warns.
func TestAFamilyLeftOutOfNodePortAddressesWarns(t *testing.T) {
	c, _, err := load(t, "hostnameOverride: node-a\nclusterCIDR: 10.244.0.0/16\nnodePortAddresses: [\"2001:db8:10::/64\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, c, "nodePortAddresses", "no IPv4 range")
}

// The warning of a name that is no Node's stays for as long as there is none.
func TestANameOfNoNodeWarns(t *testing.T) {
	c, _, err := load(t, "hostnameOverride: node-a.example.net\nclusterCIDR: 10.244.0.0/16\n")
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, c, "Node node-a.example.net", "only endpoints that name it count as local")
}

// A family without a pod range loses the masquerading by origin, which is said and stops nothing.
func TestAClusterCIDRWithoutIPv4Warns(t *testing.T) {
	c, _, err := load(t, "detectLocalMode: ClusterCIDR\nclusterCIDR: fd00:244::/56\nhostnameOverride: node-a\n")
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, c, "detectLocalMode", "no IPv4 client counts as a pod")
}

// wantProblem plans one Service on node-a.
func wantProblem(t *testing.T, c config.Config, object, text string) {
	t.Helper()
	s := model.NewSnapshot()
	s.Nodes["node-a"] = &model.Node{Name: "node-a"}
	web := &model.Service{
		Name:       model.Name{Namespace: "harbor", Name: "south"},
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.30.20")},
		Ports:      []model.ServicePort{{Protocol: model.TCP, Port: 80}},
	}
	s.Services[web.Name] = web
	problems := plan.Build(c.Plan, plan.Host{}, s).Problems()
	for _, p := range problems {
		if p.Object == object && strings.Contains(p.Text, text) {
			return
		}
	}
	t.Errorf("no problem of %s says %q: %v", object, text, problems)
}
