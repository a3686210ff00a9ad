package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/backend/iptables"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/source/manifest"
)

// perFile is the number of Services in one file.
const perFile = 50

// clusterCIDR has all endpoints.
const clusterCIDR = "10.128.0.0/9"

// folder is manifests of many Services.
type folder struct {
	path string
	// odd is the file that changes.
	odd string
}

func newFolder(b *testing.B, services int) *folder {
	b.Helper()
	f := &folder{path: b.TempDir()}
	for first := 0; first < services; first += perFile {
		var text strings.Builder
		for i := first; i < min(first+perFile, services); i++ {
			text.WriteString(service(i, *endpoints, 0))
		}
		f.odd = filepath.Join(f.path, fmt.Sprintf("services-%05d.yaml", first))
		write(b, f.odd, text.String())
	}
	f.odd = filepath.Join(f.path, "odd.yaml")
	f.put(b, service(services, *endpoints, 0))
	return f
}

// put changes what the odd file says, in one step, and tells the difference.
func (f *folder) put(b *testing.B, texts ...string) model.Delta {
	b.Helper()
	before := model.NewSnapshot()
	if _, err := os.Stat(f.odd); err == nil {
		before = read(b, f.odd)
	}
	write(b, f.odd, strings.Join(texts, ""))
	return model.Diff(before, read(b, f.odd))
}

func write(b *testing.B, path, text string) {
	b.Helper()
	err := os.WriteFile(path+".new", []byte(text), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func read(b *testing.B, path string) *model.Snapshot {
	b.Helper()
	s, problems, err := manifest.Read([]string{path}, nil)
	if err != nil || len(problems) > 0 {
		b.Fatal(err, problems)
	}
	return s
}

// service is a Service and its endpoints, of which the first is a different one in each version.
func service(i, endpoints, version int) string {
	var text strings.Builder
	fmt.Fprintf(&text, `---
apiVersion: v1
kind: Service
metadata:
  name: service-%[1]d
spec:
  clusterIP: 10.100.%[2]d.%[3]d
  ports:
  - {name: http, port: 80, targetPort: 8080}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: service-%[1]d
  labels: {kubernetes.io/service-name: service-%[1]d}
addressType: IPv4
ports:
- {name: http, port: 8080}
endpoints:
`, i, i>>8, i&255)
	for e := range endpoints {
		second := 128 + e
		if e == 0 {
			second += 100 + version
		}
		fmt.Fprintf(&text, "- addresses: [10.%d.%d.%d]\n", second, i>>8, i&255)
	}
	return text.String()
}

func policy() plan.Config {
	return plan.Config{ClusterCIDRs: prefixes(clusterCIDR)}
}

// rules are those of so many Services.
func rules(b *testing.B, services int) []byte {
	b.Helper()
	planner := plan.NewPlanner(policy())
	planner.Update(model.Delta(*read(b, newFolder(b, services).path)))
	var text bytes.Buffer
	if err := iptables.Compile(planner.Plan(), iptables.DefaultOptions()).RenderFamily(&text, model.IPv4); err != nil {
		b.Fatal(err)
	}
	return text.Bytes()
}
