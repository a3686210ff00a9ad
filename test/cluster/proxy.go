package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"sluice/internal/kernel/netns"
)

// The ports of a proxy's own servers, on its node.
const (
	healthPort  = "10256"
	metricsPort = "10249"
)

// Proxy is Sluice or kube-proxy on a node.
type Proxy struct {
	*Process
	Node *Node
	// Config is its configuration file.
	Config string
	http   http.Client
}

// ProxyOptions are what a test may choose of a proxy.
type ProxyOptions struct {
	// Mode is KubeProxyConfiguration's mode.
	Mode string
	// Config is YAML of further KubeProxyConfiguration fields, which win over those that the cluster sets.
	Config string
	// Flags are further ones.
	Flags []string
	// Env ("KEY=value") is added to the environment.
	Env []string
}

// StartKubeProxy runs upstream's kube-proxy on a node until the test ends.
func (c *Cluster) StartKubeProxy(t testing.TB, node string, o ProxyOptions) *Proxy {
	t.Helper()
	return c.startProxy(t, proxyKind{name: "kube-proxy", account: "kube-proxy"}, node, o)
}

// StartSluice runs `sluice run` on a node until the test ends, with the account and the rights that deploy/ gives it.
func (c *Cluster) StartSluice(t testing.TB, node string, o ProxyOptions) *Proxy {
	t.Helper()
	return c.startProxy(t, proxyKind{name: "sluice", account: "sluice", args: []string{"run"}}, node, o)
}

// proxyKind is what differs between the two.
type proxyKind struct {
	name, account string
	args          []string
}

func (c *Cluster) startProxy(t testing.TB, kind proxyKind, node string, o ProxyOptions) *Proxy {
	t.Helper()
	n := c.Node(t, node)
	name := kind.name + "-" + node
	kubeconfig := c.accountKubeconfig(t, name, kind.account)
	config, err := configuration(node, kubeconfig, o)
	if err == nil {
		err = os.WriteFile(c.file(name+".yaml"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := program(t, kind.name)
	args := append(append(kind.args, "--config="+c.file(name+".yaml")), o.Flags...)
	p := c.newProxy(t, n, name, func() *netns.Cmd {
		cmd := n.Program(path, args...)
		cmd.Env = append(cmd.Env, o.Env...)
		return cmd
	})
	p.Config = c.file(name + ".yaml")
	p.Start(t)
	return p
}

// newProxy is a proxy that does not run yet, and ends with the test.
func (c *Cluster) newProxy(t testing.TB, n *Node, name string, command func() *netns.Cmd) *Proxy {
	t.Helper()
	p := &Proxy{Process: newProcess(name, c.Folder, command), Node: n}
	p.http = http.Client{Transport: &http.Transport{DialContext: dialer(n.Host), DisableKeepAlives: true}, Timeout: 10 * time.Second}
	t.Cleanup(func() { p.finish(t, syscall.SIGTERM) })
	return p
}

// configuration is a proxy's configuration file. A namespace may not change the size of the connection tracking table,
// which is the host's, so that no proxy is to try.
func configuration(node, kubeconfig string, o ProxyOptions) ([]byte, error) {
	config := map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             o.Mode,
		"hostnameOverride": node,
		"clusterCIDR":      PodRanges,
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		"conntrack":        map[string]any{"maxPerCore": 0, "min": 0},
	}
	further := map[string]any{}
	if err := yaml.Unmarshal([]byte(o.Config), &further); err != nil {
		return nil, fmt.Errorf("ProxyOptions.Config: %w", err)
	}
	merge(config, further)
	return yaml.Marshal(config)
}

// merge puts fields into a configuration, whole or into what is there.
func merge(into, fields map[string]any) {
	for key, value := range fields {
		inner, ok := value.(map[string]any)
		have, has := into[key].(map[string]any)
		if ok && has {
			have = maps.Clone(have)
			merge(have, inner)
			value = have
		}
		into[key] = value
	}
}

// Get asks one of the proxy's servers on its node.
func (p *Proxy) Get(port, path string) (status int, body string, err error) {
	r, err := p.http.Get("http://127.0.0.1:" + port + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	var text bytes.Buffer
	_, err = io.Copy(&text, r.Body)
	return r.StatusCode, text.String(), err
}

// Healthz is what /healthz answers.
func (p *Proxy) Healthz() (status int, body string, err error) { return p.Get(healthPort, "/healthz") }

// Metrics are all figures of the proxy. It is fatal if it does not tell.
func (p *Proxy) Metrics(t testing.TB) Metrics {
	t.Helper()
	m, err := p.metrics()
	if err != nil {
		t.Fatalf("metrics of %s: %v\n%s", p.Name, err, tail(p.Log()))
	}
	return m
}

func (p *Proxy) metrics() (Metrics, error) {
	status, body, err := p.Get(metricsPort, "/metrics")
	if err == nil && status != http.StatusOK {
		err = errors.New(http.StatusText(status))
	}
	if err != nil {
		return nil, err
	}
	return parseMetrics(body)
}

// WaitSynced waits until the proxy has written all that it knew when it started: it is healthy, and has been through a
// sync for each family, with nothing left to do. What the API server tells it later is not waited for: wait for the
// connection that shows it.
func (p *Proxy) WaitSynced(t testing.TB) {
	t.Helper()
	WaitFor(t, p.Name+" to be in sync", func() error {
		if err := p.fate(); err != nil {
			return hopeless{err}
		}
		if status, body, err := p.Healthz(); err != nil || status != http.StatusOK {
			return fmt.Errorf("/healthz: %d %s, %w; its log ends with\n%s", status, body, err, tail(p.Log()))
		}
		m, err := p.metrics()
		if err != nil {
			return err
		}
		return m.synced()
	})
}
