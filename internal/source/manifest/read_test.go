package manifest_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"sluice/internal/model"
	"sluice/internal/source/convert"
	"sluice/internal/source/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// TestRead reads the files of each archive in testdata as one folder. The parts "snapshot" and "problems" are what it
// should mean.
func TestRead(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := unpack(t, archive)
			snapshot, problems, err := manifest.Read([]string{dir}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{
				"snapshot": describe(snapshot),
				"problems": strings.ReplaceAll(lines(problems), dir+"/", ""),
			}
			for i, f := range archive.Files {
				want, golden := got[f.Name]
				if !golden {
					continue
				}
				archive.Files[i].Data = []byte(want)
				if diff := cmp.Diff(string(f.Data), want); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				write(t, path, string(txtar.Format(archive)))
			}
		})
	}
}

func unpack(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, string(f.Data))
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func lines(problems []manifest.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&b, p.Error())
	}
	return b.String()
}

// describe writes a Snapshot as text, one line for each object and endpoint.
func describe(s *model.Snapshot) string {
	var out []string
	for _, v := range s.Services {
		line := fmt.Sprintf("Service %s %s %v", v.Name, v.Type, v.ClusterIPs)
		for _, p := range v.Ports {
			line += fmt.Sprintf(" %s:%d/%s:%d", p.Name, p.Port, p.Protocol, p.NodePort)
		}
		out = append(out, line)
	}
	for _, v := range s.Slices {
		out = append(out, fmt.Sprintf("Slice %s of %s %s %v", v.Name, v.Service, v.Family, v.Ports))
		for _, e := range v.Endpoints {
			out = append(out, fmt.Sprintf("Slice %s: %s on %q ready=%v", v.Name, e.Address, e.Node, e.Ready))
		}
	}
	for _, v := range s.ServiceCIDRs {
		out = append(out, fmt.Sprintf("ServiceCIDR %s %v", v.Name, v.Prefixes))
	}
	for _, v := range s.Nodes {
		out = append(out, fmt.Sprintf("Node %s %s %v %v", v.Name, v.Zone, v.InternalIPs, v.PodCIDRs))
	}
	slices.Sort(out)
	return strings.Join(append(out, ""), "\n")
}

const web = `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  clusterIP: 10.0.0.1
  ports: [{port: 80}]
`

func TestReadStdin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "services")
	write(t, file, strings.ReplaceAll(web, "web", "file"))
	snapshot, problems, err := manifest.Read([]string{manifest.Stdin, file}, strings.NewReader(web+"---\nkind: [\n"))
	if err != nil || len(snapshot.Services) != 2 {
		t.Fatalf("snapshot %v, error %v", snapshot, err)
	}
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "standard input:8: ") {
		t.Errorf("problems: %v", problems)
	}
}

func TestReadUnreadable(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, test := range []struct {
		name  string
		paths []string
		want  error
	}{
		{"no such path", []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")}, fs.ErrNotExist},
		{"standard input", []string{manifest.Stdin}, broken},
	} {
		snapshot, problems, err := manifest.Read(test.paths, iotest.ErrReader(broken))
		if !errors.Is(err, test.want) || snapshot != nil || problems != nil {
			t.Errorf("%s: snapshot %v, problems %v, error %v", test.name, snapshot, problems, err)
		}
	}
	if _, _, err := manifest.Read([]string{manifest.Stdin}, nil); err == nil {
		t.Error("no standard input: no error")
	}
}

// TestReadOpensNoPipeInFolder would hang if it did.
func TestReadOpensNoPipeInFolder(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "web.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")); err != nil {
		t.Fatal(err)
	}
	_, _, err := manifest.Read([]string{dir}, nil)
	if err == nil || strings.Count(err.Error(), "not a regular file") != 2 {
		t.Errorf("error %v", err)
	}
}

func TestReadFollowsLinksOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "web.yaml"), web)
	if err := os.Symlink("web.yaml", filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	snapshot, problems, err := manifest.Read([]string{dir, filepath.Join(dir, "web.yaml")}, nil)
	if err != nil || len(snapshot.Services) != 1 || len(problems) > 0 {
		t.Errorf("snapshot %v, problems %v, error %v", snapshot, problems, err)
	}
}

func TestReadTemplates(t *testing.T) {
	const text = `apiVersion: v1
kind: ReplicationController
metadata: {name: registry}
spec:
  template:
    metadata: {labels: {name: registry}}
    spec: {containers: [{name: registry, ports: [{containerPort: 22, name: ssh}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2}
`
	got, problems, err := manifest.ReadTemplates([]string{manifest.Stdin}, strings.NewReader(text))
	want := []convert.PodTemplate{
		{Kind: "Deployment", Name: model.Name{Namespace: "default", Name: "web"}, Replicas: 2},
		{
			Kind: "ReplicationController", Name: model.Name{Namespace: "default", Name: "registry"}, Replicas: 1,
			Labels: map[string]string{"name": "registry"}, Ports: []convert.ContainerPort{{Name: "ssh", Protocol: model.TCP, Port: 22}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(problems) > 0 {
		t.Errorf("error %v, problems %v, templates (-want +got):\n%s", err, problems, diff)
	}
}
