package test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// What would not work is refused before anything is installed.
func TestChartRefuses(t *testing.T) {
	host := map[string]any{"host": "192.0.2.1"}
	for _, c := range []struct {
		name   string
		values map[string]any
		says   string
	}{
		{"no API server", map[string]any{}, "apiServer.host"},
		{"a URL as the host", map[string]any{"apiServer": map[string]any{"host": "https://192.0.2.1"}}, "host"},
		{"a misspelt value", map[string]any{"apiServer": host, "priviledged": true}, "priviledged"},
		{"a mode that is none", map[string]any{"apiServer": host, "config": map[string]any{"mode": "winkernel"}}, "mode"},
		{"mode iptables without privilege", map[string]any{"apiServer": host, "privileged": false, "config": map[string]any{"mode": "iptables"}}, "privileged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := renderChart(t, c.values); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error about %s", err, c.says)
			}
		})
	}
}

func TestChartTakesValues(t *testing.T) {
	values := map[string]any{
		"apiServer": map[string]any{"host": "2001:db8::1", "port": 443},
		"image":     map[string]any{"repository": "registry.example/sluice", "digest": "sha256:" + strings.Repeat("0", 64)},
		"config":    map[string]any{"healthzBindAddress": "0.0.0.0:20256"},
		"extraArgs": []any{"--hostname-override=other"}, "podAnnotations": map[string]any{"a": "b"},
		"imagePullSecrets": []any{map[string]any{"name": "secret"}},
	}
	d := typed[appsv1.DaemonSet](t, helm(t, values), "DaemonSet/sluice").Spec.Template
	c := d.Spec.Containers[0]
	if want := "registry.example/sluice@sha256:" + strings.Repeat("0", 64); c.Image != want {
		t.Errorf("image %s, want %s", c.Image, want)
	}
	if c.Ports[0].ContainerPort != 20256 || c.Args[len(c.Args)-1] != "--hostname-override=other" {
		t.Errorf("port %d, args %q", c.Ports[0].ContainerPort, c.Args)
	}
	if d.Annotations["a"] != "b" || d.Spec.ImagePullSecrets[0].Name != "secret" {
		t.Errorf("annotations %v, secrets %v", d.Annotations, d.Spec.ImagePullSecrets)
	}
}

// Mode iptables has an image of its own, whatever its tag is.
func TestChartChoosesTheImage(t *testing.T) {
	for _, tt := range []struct{ mode, tag, want string }{
		{"nftables", "1", "sluice:1"},
		{"ipvs", "1", "sluice:1"},
		{"iptables", "1", "sluice:1-iptables"},
		{"iptables", "1-iptables", "sluice:1-iptables"},
	} {
		values := map[string]any{
			"apiServer": map[string]any{"host": "192.0.2.1"},
			"image":     map[string]any{"tag": tt.tag},
			"config":    map[string]any{"mode": tt.mode},
		}
		d := typed[appsv1.DaemonSet](t, helm(t, values), "DaemonSet/sluice").Spec.Template
		if got := d.Spec.Containers[0].Image; got != tt.want {
			t.Errorf("mode %s, tag %s: image %s, want %s", tt.mode, tt.tag, got, tt.want)
		}
	}
}

// The schema names exactly the values that there are.
func TestSchemaNamesAllValues(t *testing.T) {
	c := loadChart(t)
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // Helm's own
	if got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(c.Values)); !slices.Equal(got, want) {
		t.Errorf("the schema has %v, the values are %v", got, want)
	}
}
