package test

import (
	"bytes"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// flavour is a kustomization and the values of the chart that mean the same.
type flavour struct {
	name   string
	folder string
	values map[string]any
}

// flavours are all that deploy has. The host is the base's, which the chart has no default for.
func flavours() []flavour {
	with := func(more map[string]any) map[string]any {
		values := map[string]any{"apiServer": map[string]any{"host": "api-server.invalid"}}
		maps.Copy(values, more)
		return values
	}
	return []flavour{
		{"base", "base", with(nil)},
		{"iptables", "overlays/iptables", with(map[string]any{"config": map[string]any{"mode": "iptables"}})},
		{"unprivileged", "overlays/unprivileged", with(map[string]any{"privileged": false})},
	}
}

// objects are what is applied, by "Kind/name".
type objects map[string]*unstructured.Unstructured

func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("../kustomize", folder))
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func helm(t *testing.T, values map[string]any) objects {
	t.Helper()
	files, err := renderChart(t, values)
	if err != nil {
		t.Fatal(err)
	}
	all := objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			maps.Copy(all, decode(t, []byte(files[name])))
		}
	}
	return all
}

// renderChart returns the chart's files as Helm renders them, or why it refuses the values.
func renderChart(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	release := common.ReleaseOptions{Name: "sluice", Namespace: "kube-system", IsInstall: true}
	all, err := util.ToRenderValues(c, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(t.Context(), c, all)
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("../helm/sluice")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func decode(t *testing.T, text []byte) objects {
	t.Helper()
	all := objects{}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := d.Decode(&o.Object); {
		case err == io.EOF:
			return all
		case err != nil:
			t.Fatalf("%v in:\n%s", err, text)
		case len(o.Object) > 0:
			all[o.GetKind()+"/"+o.GetName()] = o
		}
	}
}
