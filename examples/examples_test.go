package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/examples"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/source/manifest"
)

// Every example is right to the last field, and everything in it is served on its node1.
func TestEveryExampleWorksByItself(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			s, problems, err := manifest.Read([]string{name}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Errorf("%s", p)
			}
			p := plan.Build(plan.Config{NodeName: "node1"}, plan.Host{}, s)
			if len(s.Services) == 0 || len(p.Ports) < len(s.Services) {
				t.Errorf("%d Services, of which %d ports are planned", len(s.Services), len(p.Ports))
			}
			for id, port := range p.Ports {
				if len(port.Cluster) == 0 {
					t.Errorf("%s has no endpoint", id)
				}
			}
			if _, ok := s.Nodes["node1"]; !ok {
				t.Error("there is no node1")
			}
		})
	}
}

func TestTheRegistryIsWhereItWas(t *testing.T) {
	s, _, err := manifest.Read([]string{"registry.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Build(plan.Config{NodeName: "node1"}, plan.Host{}, s)
	id := plan.PortID{Service: model.Name{Namespace: "default", Name: "registry"}, Port: "ssh", Protocol: model.TCP}
	port := p.Ports[id]
	if port == nil || len(port.Cluster) != 1 || port.Cluster[0].String() != "172.17.0.5:22" {
		t.Errorf("got %+v", port)
	}
}

func TestReadmeNamesEveryExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t) {
		if !strings.Contains(string(readme), "["+name+"]("+name+")") {
			t.Errorf("README.md has no line for %s", name)
		}
	}
}

func names(t *testing.T) []string {
	t.Helper()
	embedded, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(embedded) != len(onDisk) || len(embedded) == 0 {
		t.Fatalf("%d files are embedded, %d are there", len(embedded), len(onDisk))
	}
	return embedded
}
