package dropin_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sluice/test/cluster"
)

const node = "node-a"

// The pod of the DaemonSet works as each kustomization has it, with the rights that it has.
func TestDaemonSet(t *testing.T) {
	c := start(t, cluster.Options{AuditLog: true})
	for _, tt := range []struct{ folder, mode string }{
		{"base", "nftables"},
		{"overlays/unprivileged", "nftables"},
		{"overlays/iptables", "iptables"},
	} {
		t.Run(tt.folder, func(t *testing.T) {
			r := render(t, c, tt.folder)
			made, _ := r.container(t, c, node)
			if tt.mode == "iptables" {
				made.Mounts = append(imageWithIPTables(t), made.Mounts...)
			}
			p := made.start(t, c, node)
			runsAs(t, p, tt.mode)
			c.WaitUsers(t, node)
			probe(t, p, r.daemonSet.Spec.Template.Spec.Containers[0])
			hasOnly(t, p, made.Capabilities)
			if lines := alarms(p.Log()); len(lines) > 0 {
				t.Errorf("it alarms:\n%s", strings.Join(lines, ""))
			}
		})
	}
	noneRefused(t, c, "sluice")
}

// probe asks what the kubelet asks.
func probe(t *testing.T, p *cluster.Proxy, c v1.Container) {
	t.Helper()
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		port := slices.IndexFunc(c.Ports, func(port v1.ContainerPort) bool { return intstr.FromString(port.Name) == probe.HTTPGet.Port })
		if port < 0 {
			t.Fatalf("no port %s", probe.HTTPGet.Port.String())
		}
		status, body, err := p.Get(fmt.Sprint(c.Ports[port].ContainerPort), probe.HTTPGet.Path)
		if err != nil || status != http.StatusOK {
			t.Errorf("%s: %d %s, %v", probe.HTTPGet.Path, status, body, err)
		}
	}
}

// hasOnly wants a process to have these capabilities and no more, as far as the tests have them; nil stands for those of
// the privileged.
func hasOnly(t *testing.T, p *cluster.Proxy, capabilities []int) {
	t.Helper()
	want := boundingSet(t, "self")
	if capabilities != nil {
		var mask uint64
		for _, c := range capabilities {
			mask |= 1 << c
		}
		want &= mask
	}
	if got := boundingSet(t, strconv.Itoa(p.Pid())); got != want {
		t.Errorf("it may have the capabilities %x, want %x", got, want)
	}
}

// boundingSet has a bit for each capability that a process of root has.
func boundingSet(t *testing.T, pid string) (mask uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err == nil {
		_, after, _ := strings.Cut(string(text), "CapBnd:\t")
		line, _, _ := strings.Cut(after, "\n")
		mask, err = strconv.ParseUint(line, 16, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

// A change of the ConfigMap is followed without a restart, another mode included, and no client notices. What is wrong is
// told and changes nothing.
func TestConfigMapTurns(t *testing.T) {
	c := start(t, cluster.Options{})
	r := render(t, c, "overlays/iptables")
	made, config := r.container(t, c, node)
	made.Mounts = append(imageWithIPTables(t), made.Mounts...)
	p := made.start(t, c, node)
	runsAs(t, p, "iptables")
	c.WaitUsers(t, node)
	iptables := r.config.Data[configKey]
	nftables := replaced(t, iptables, "mode: iptables", "mode: nftables")
	c.UnderLoad(t, node, func() {
		for _, turn := range []struct{ config, mode string }{{nftables, "nftables"}, {iptables, "iptables"}, {nftables, "nftables"}} {
			config.turn(t, map[string]string{configKey: turn.config})
			turned(t, p, turn.mode)
			c.WaitUsers(t, node)
		}
		config.turn(t, map[string]string{configKey: replaced(t, nftables, "mode: nftables", "mode: 5")})
		says(t, p, `config.conf:\d+: mode: 5`)
		config.turn(t, map[string]string{configKey: replaced(t, nftables, "10249", "10250")})
		cluster.WaitFor(t, "the metrics to move", func() error {
			_, _, err := p.Get("10250", "/metrics")
			return err
		})
		c.WaitUsers(t, node)
	})
}

// A mode that the image cannot do is told, and the one that works stays.
func TestConfigMapAsksTooMuch(t *testing.T) {
	c := start(t, cluster.Options{})
	r := render(t, c, "base")
	made, config := r.container(t, c, node)
	p := made.start(t, c, node)
	runsAs(t, p, "nftables")
	c.UnderLoad(t, node, func() {
		config.turn(t, map[string]string{configKey: replaced(t, r.config.Data[configKey], "mode: nftables", "mode: iptables")})
		says(t, p, `iptables is not installed`)
		c.WaitUsers(t, node)
		config.turn(t, map[string]string{configKey: r.config.Data[configKey]})
		turned(t, p, "nftables")
		c.WaitUsers(t, node)
	})
}

// turned waits until a proxy is in sync in a mode.
func turned(t *testing.T, p *cluster.Proxy, mode string) {
	t.Helper()
	cluster.WaitFor(t, "mode "+mode, func() error {
		_, body, err := p.Get("10249", "/proxyMode")
		if err == nil && body != mode {
			err = errors.New("it is " + body)
		}
		return err
	})
	p.WaitSynced(t)
}

// says waits until a log has a line.
func says(t *testing.T, p *cluster.Proxy, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	cluster.WaitFor(t, pattern+" in the log", func() error {
		if !re.MatchString(p.Log()) {
			return errors.New(p.Log())
		}
		return nil
	})
}
