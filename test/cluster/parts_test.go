package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"sluice/internal/lab"
)

func TestIPAMGivesAnAddressAgainAsLateAsPossible(t *testing.T) {
	a := newIPAM(podRanges(0))
	first, err := a.take()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(first), "[10.244.1.1 fd00:244:0:1::1]"; got != want {
		t.Errorf("the first pod has %s, want %s", got, want)
	}
	a.free(first)
	seen := map[netip.Addr]bool{}
	for range lastHost {
		addrs, err := a.take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[addrs[0]] {
			t.Fatalf("%s twice", addrs[0])
		}
		if seen[addrs[0]] = true; addrs[0] == first[0] && len(seen) != lastHost {
			t.Errorf("%s comes up again as number %d", addrs[0], len(seen))
		}
	}
	if addrs, err := a.take(); err == nil {
		t.Errorf("one more: %s", addrs)
	}
}

func TestMetrics(t *testing.T) {
	m, err := parseMetrics(`# HELP a b
a{ip_family="IPv4",le="0.1"} 1
a{ip_family="IPv6",le="0.1"} 2
a{x_ip_family="IPv6"} 4
ab 8
c{text="with space"} 1.5e+09
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"a", nil, 7},
		{"a", []string{`ip_family="IPv6"`}, 2},
		{"a", []string{`ip_family="IPv6"`, `le="0.1"`}, 2},
		{"a", []string{`le="1"`}, 0},
		{"c", nil, 1.5e9},
		{"none", nil, 0},
	} {
		if got := m.Sum(tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s %v: %g, want %g", tt.name, tt.labels, got, tt.want)
		}
	}
	if m.Has("b") || !m.Has("ab") {
		t.Error("what there is and what not is mistaken")
	}
	if _, err := parseMetrics("<html>"); err == nil {
		t.Error("a page passes for figures")
	}
}

func TestConfigurationOfATestWins(t *testing.T) {
	text, err := configuration("node-a", "/k", ProxyOptions{
		Mode: "nftables", Config: "conntrack: {tcpBeLiberal: true}\nclusterCIDR: 10.0.0.0/8\nmetricsBindAddress: 0.0.0.0:1",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
		"hostnameOverride": "node-a", "clusterCIDR": "10.0.0.0/8", "clientConnection": map[string]any{"kubeconfig": "/k"},
		"conntrack":          map[string]any{"maxPerCore": 0., "min": 0., "tcpBeLiberal": true},
		"metricsBindAddress": "0.0.0.0:1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := configuration("node-a", "/k", ProxyOptions{Config: "- no fields"}); err == nil {
		t.Error("a list passes for fields")
	}
}

func TestPodsGoToTheNodesInTurn(t *testing.T) {
	nodes := []*Node{
		{Host: hostNamed("a"), spec: NodeSpec{Name: "a"}},
		{Host: hostNamed("b"), spec: NodeSpec{Name: "b", Labels: map[string]string{"disk": "fast"}}},
	}
	var s turn
	choose := func(spec v1.PodSpec) string {
		name, err := s.choose(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, nodes)
		if err != nil {
			return "none"
		}
		return name
	}
	if got := choose(v1.PodSpec{}) + choose(v1.PodSpec{}) + choose(v1.PodSpec{}); got != "aba" {
		t.Errorf("three pods go to %s", got)
	}
	if got := choose(v1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}); got != "b" {
		t.Errorf("a pod that wants a fast disk goes to %s", got)
	}
	if got := choose(v1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/hostname": "c"}}); got != "none" {
		t.Errorf("a pod that wants node c goes to %s", got)
	}
	if got := choose(v1.PodSpec{Affinity: toNode("a")}) + choose(v1.PodSpec{Affinity: toNode("b")}); got != "ab" {
		t.Errorf("the pods of a DaemonSet go to %s", got)
	}
}

// toNode is the affinity that the pods of a DaemonSet have.
func toNode(name string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
		}},
	}}}
}

func TestUsageCountsChildren(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	children, err := childMemory(os.Getpid())
	if err != nil || children == 0 {
		t.Errorf("a child has %d bytes, %v", children, err)
	}
	if u, err := usage(os.Getpid()); err != nil || u.RSS == 0 || u.Peak < u.RSS {
		t.Errorf("this process uses %+v, %v", u, err)
	}
}

func hostNamed(name string) *lab.Host { return &lab.Host{Machine: lab.Machine{Name: name}} }
