package dropin_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"sluice/test/cluster"
)

// release is what a kustomization makes, with what every user has to fill in.
type release struct {
	daemonSet appsv1.DaemonSet
	config    v1.ConfigMap
}

// render makes the objects of a folder of deploy/kustomize.
func render(t *testing.T, c *cluster.Cluster, folder string) (r release) {
	t.Helper()
	text := c.Kubectl(t, "", "kustomize", filepath.Join("..", "..", "..", "deploy", "kustomize", folder))
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object struct{ Kind string }
		err := yaml.Unmarshal([]byte(document), &object)
		switch object.Kind {
		case "DaemonSet":
			err = yaml.UnmarshalStrict([]byte(document), &r.daemonSet)
		case "ConfigMap":
			err = yaml.UnmarshalStrict([]byte(document), &r.config)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(c.Config().Host, "https://"), ":")
	r.config.Data["api-server-host"], r.config.Data["api-server-port"] = host, port
	r.config.Data[configKey] = replaced(t, r.config.Data[configKey], `clusterCIDR: ""`, "clusterCIDR: "+cluster.PodRanges)
	return r
}

// configKey is the key of the ConfigMap that has the configuration file.
const configKey = "config.conf"

// replaced is a text with a part of it replaced, which must be there.
func replaced(t *testing.T, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("no %q in:\n%s", old, text)
	}
	return strings.Replace(text, old, new, 1)
}

// container is what a kubelet would have the container runtime start on a node. config is the folder of the ConfigMap.
func (r release) container(t *testing.T, c *cluster.Cluster, node string) (made container, config volume) {
	t.Helper()
	spec := r.daemonSet.Spec.Template.Spec
	main := spec.Containers[0]
	made = container{
		Args:     append(slices.Clone(main.Command), main.Args...),
		ReadOnly: *main.SecurityContext.ReadOnlyRootFilesystem,
		Mounts:   []mount{account(t, c, spec.ServiceAccountName)},
	}
	for _, e := range main.Env {
		value := r.value(t, e, node)
		made.Env = append(made.Env, e.Name+"="+value)
		for i := range made.Args {
			made.Args[i] = strings.ReplaceAll(made.Args[i], "$("+e.Name+")", value)
		}
	}
	if !*main.SecurityContext.Privileged {
		made.Capabilities = capabilities(t, main.SecurityContext.Capabilities)
	}
	for _, v := range spec.Volumes {
		m := mountOf(t, main, v.Name)
		if v.ConfigMap != nil {
			config = newVolume(t, map[string]string{configKey: r.config.Data[configKey]})
			m.From = config.path
		} else {
			m.From = hostFile(t, *v.HostPath)
		}
		made.Mounts = append(made.Mounts, m)
	}
	return made, config
}

// value is what an environment variable is on a node.
func (r release) value(t *testing.T, e v1.EnvVar, node string) string {
	t.Helper()
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value
	case from.FieldRef != nil && from.FieldRef.FieldPath == "spec.nodeName":
		return node
	case from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name == r.config.Name:
		return r.config.Data[from.ConfigMapKeyRef.Key]
	}
	t.Fatalf("this test does not know where %s comes from", e.Name)
	return ""
}

// capabilities are the numbers of those that are left.
func capabilities(t *testing.T, c *v1.Capabilities) []int {
	t.Helper()
	if !slices.Equal(c.Drop, []v1.Capability{"ALL"}) {
		t.Fatalf("not all capabilities are dropped, but %v", c.Drop)
	}
	numbers := []int{}
	for _, name := range c.Add {
		number, ok := map[v1.Capability]int{"NET_ADMIN": 12, "NET_RAW": 13, "SYS_RESOURCE": 24}[name]
		if !ok {
			t.Fatalf("this test does not know the number of capability %s", name)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// mountOf is where a container has a volume.
func mountOf(t *testing.T, c v1.Container, volume string) mount {
	t.Helper()
	for _, m := range c.VolumeMounts {
		if m.Name == volume {
			return mount{At: m.MountPath, ReadOnly: m.ReadOnly}
		}
	}
	t.Fatalf("no container has the volume %s", volume)
	return mount{}
}

// hostFile is a file of the node's that is made if need be; a file of the test's own stands for it.
func hostFile(t *testing.T, v v1.HostPathVolumeSource) string {
	t.Helper()
	if v.Type == nil || *v.Type != v1.HostPathFileOrCreate {
		t.Fatalf("%s is no file to be made", v.Path)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(v.Path))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configMap is the ConfigMap as YAML.
func (r release) configMap(t *testing.T) string {
	t.Helper()
	text, err := yaml.Marshal(r.config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
