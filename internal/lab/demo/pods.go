package demo

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"sluice/examples"
	"sluice/internal/lab"
	"sluice/internal/model"
)

// pod is one pod of the story: a machine of the lab, a server on it, and a manifest that says how it is.
type pod struct {
	name     string
	workload string
	service  string // that it is behind
	labels   map[string]string
	port     uint16
	address  netip.Addr

	host   *lab.Host
	server *lab.Server // nil: it does not answer
}

func (p *pod) endpoint() netip.AddrPort { return netip.AddrPortFrom(p.address, p.port) }

// answer makes the pod answer its clients.
func (p *pod) answer() (err error) {
	p.server, err = p.host.Serve(model.TCP, p.endpoint())
	return err
}

// fall makes it refuse them, and cuts those that are connected.
func (p *pod) fall() error {
	defer func() { p.server = nil }()
	return p.server.Close()
}

// manifest is the Pod object as a cluster's API would have it.
func (p *pod) manifest(ready bool) string {
	condition := "False"
	if ready {
		condition = "True"
	}
	var labels strings.Builder
	for k, v := range p.labels {
		fmt.Fprintf(&labels, "    %s: %q\n", k, v)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: default
  labels:
%sspec:
  nodeName: %s
  containers:
  - name: %s
    ports:
    - containerPort: %d
status:
  podIP: %s
  conditions:
  - type: Ready
    status: %q
`, p.name, labels.String(), nodeName, p.workload, p.port, p.address, condition)
}

// manifests is the folder that the daemon watches.
type manifests string

// put writes a file so that nobody ever reads half of it.
func (m manifests) put(name, text string) error {
	hidden := filepath.Join(string(m), "."+name+".new")
	return errors.Join(
		os.WriteFile(hidden, []byte(text), 0o600),
		os.Rename(hidden, filepath.Join(string(m), name)),
	)
}

func (m manifests) putPod(p *pod, ready bool) error { return m.put(p.name+".yaml", p.manifest(ready)) }

func (m manifests) removePod(p *pod) error {
	return os.Remove(filepath.Join(string(m), p.name+".yaml"))
}

// putNode writes the Node.
func (m manifests) putNode() error {
	return m.put(nodeName+".yaml", fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: %s
status:
  addresses:
  - type: InternalIP
    address: %s
`, nodeName, nodeAddress))
}

// putExample writes an example without its Pods and its Node: those of the lab take their place.
func (m manifests) putExample(name string) error {
	text, err := examples.Files.ReadFile(name)
	if err != nil {
		return err
	}
	var kept []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if !isKind(document, "Pod") && !isKind(document, "Node") {
			kept = append(kept, document)
		}
	}
	return m.put(name, strings.Join(kept, "\n---\n"))
}

func isKind(document, kind string) bool {
	return strings.Contains("\n"+document+"\n", "\nkind: "+kind+"\n")
}
