package test

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	proxyv1 "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

func TestHelmAndKustomizeMakeTheSame(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			want, got := kustomize(t, f.folder), helm(t, f.values)
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if got[name] == nil {
					t.Errorf("the chart has no %s", name)
					continue
				}
				if a, b := comparable(t, want[name].Object), comparable(t, got[name].Object); a != b {
					t.Errorf("%s: kustomize makes\n%s\nand helm\n%s", name, a, b)
				}
			}
			if len(got) != len(want) {
				t.Errorf("the chart makes %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		})
	}
}

// comparable is an object as text, in which the configuration file is its fields, since comments and order are free.
func comparable(t *testing.T, object map[string]any) string {
	t.Helper()
	object = runtime.DeepCopyJSON(object)
	if data, ok := object["data"].(map[string]any); ok {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(data[configKey].(string)), &file); err != nil {
			t.Fatal(err)
		}
		data[configKey] = file
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Kubernetes knows every field of every object, and what is written comes back.
func TestObjectsAreOfKubernetes(t *testing.T) {
	for _, f := range flavours() {
		for name, o := range kustomize(t, f.folder) {
			typed, err := scheme.Scheme.New(o.GroupVersionKind())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, typed); err != nil {
				t.Errorf("%s of %s: %v", name, f.name, err)
			}
		}
	}
}

// The configuration has fields of kube-proxy's alone, and the mode that the flavour is for.
func TestConfigurationIsKubeProxys(t *testing.T) {
	modes := map[string]proxyv1.ProxyMode{"base": "nftables", "iptables": "iptables", "unprivileged": "nftables"}
	for _, f := range flavours() {
		var file proxyv1.KubeProxyConfiguration
		if err := yaml.UnmarshalStrict([]byte(configOf(t, f)), &file); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		if file.Mode != modes[f.name] {
			t.Errorf("%s: mode %q, want %q", f.name, file.Mode, modes[f.name])
		}
	}
}

const configKey = "config.conf"

func configOf(t *testing.T, f flavour) string {
	t.Helper()
	return typed[corev1.ConfigMap](t, kustomize(t, f.folder), "ConfigMap/sluice").Data[configKey]
}

// What the pod refers to is there: its account, its ConfigMap's keys, its volumes, the port of its probes.
func TestPodFindsWhatItNames(t *testing.T) {
	for _, f := range flavours() {
		all := kustomize(t, f.folder)
		pod := typed[appsv1.DaemonSet](t, all, "DaemonSet/sluice").Spec.Template.Spec
		keys := typed[corev1.ConfigMap](t, all, "ConfigMap/sluice").Data
		if all["ServiceAccount/"+pod.ServiceAccountName] == nil {
			t.Errorf("%s: no ServiceAccount %q", f.name, pod.ServiceAccountName)
		}
		c := pod.Containers[0]
		for _, e := range c.Env {
			if e.ValueFrom.ConfigMapKeyRef != nil && keys[e.ValueFrom.ConfigMapKeyRef.Key] == "" {
				t.Errorf("%s: %s is of a key that the ConfigMap has not", f.name, e.Name)
			}
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s: no volume %q", f.name, m.Name)
			}
		}
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
				t.Errorf("%s: no port %q", f.name, p.HTTPGet.Port.StrVal)
			}
		}
		var file proxyv1.KubeProxyConfiguration
		if err := yaml.Unmarshal([]byte(keys[configKey]), &file); err != nil {
			t.Fatal(err)
		}
		if port := c.Ports[0].ContainerPort; !strings.HasSuffix(file.HealthzBindAddress, ":"+strconv.Itoa(int(port))) {
			t.Errorf("%s: the probes ask port %d, and the daemon listens at %s", f.name, port, file.HealthzBindAddress)
		}
	}
}

func TestBindingIsOfTheAccount(t *testing.T) {
	all := kustomize(t, "base")
	b := typed[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding/sluice")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "sluice", Namespace: "kube-system"}}
	if !reflect.DeepEqual(b.Subjects, want) || b.RoleRef.Name != "sluice" || all["ClusterRole/sluice"] == nil {
		t.Errorf("the binding is of %v to %v", b.Subjects, b.RoleRef)
	}
}

func typed[T any](t *testing.T, all objects, name string) (out T) {
	t.Helper()
	if all[name] == nil {
		t.Fatalf("no %s", name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[name].Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
