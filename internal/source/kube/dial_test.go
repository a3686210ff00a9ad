package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "SERVER"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func writeKubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDial(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	good := writeKubeconfig(t, strings.Replace(kubeconfig, "SERVER", "https://192.0.2.1:6443", 1))
	for _, test := range []struct {
		name    string
		options Options
		host    string
		wrong   string // in the error
	}{
		{"kubeconfig", Options{Kubeconfig: good}, "https://192.0.2.1:6443", ""},
		{"address beside it", Options{Kubeconfig: good, Master: "https://192.0.2.2"}, "https://192.0.2.2", ""},
		{"address alone", Options{Master: "http://192.0.2.3:8080"}, "http://192.0.2.3:8080", ""},
		{"password", Options{Master: "https://u:secret@192.0.2.3"}, "https://u:xxxxx@192.0.2.3", ""},
		{"no file", Options{Kubeconfig: good + "x"}, "", "no such file"},
		{"no YAML", Options{Kubeconfig: writeKubeconfig(t, "{")}, "", "kubeconfig"},
		{"certificate", Options{Kubeconfig: writeKubeconfig(t, strings.Replace(kubeconfig, `"SERVER"`, `"https://x", certificate-authority: none`, 1))}, "", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Dial(test.options)
			switch {
			case test.wrong == "" && err != nil:
				t.Error(err)
			case test.wrong == "" && c.Host() != test.host:
				t.Errorf("the host is %s, want %s", c.Host(), test.host)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("the error is %v, want %q in it", err, test.wrong)
			}
		})
	}
	if _, err := Dial(Options{}); !errors.Is(err, ErrNoCluster) {
		t.Errorf("without anything the error is %v, want ErrNoCluster", err)
	}
}

// What is asked, and how, is what kube-proxy asks.
func TestRequests(t *testing.T) {
	f := newFakeServer(t, 1)
	var mu sync.Mutex
	var seen []Request
	c, err := Dial(Options{
		Kubeconfig: writeKubeconfig(t, strings.Replace(kubeconfig, "SERVER", f.URL, 1)), QPS: -1,
		Requests: func(r Request) { mu.Lock(); defer mu.Unlock(); seen = append(seen, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	r, stop := start(t, c)
	eventually(t, "all is known", func() bool { return r.told() == 1 })
	stop()
	mu.Lock()
	defer mu.Unlock()
	for _, r := range seen {
		if r.Verb != "GET" || r.Code != "200" || "http://"+r.Host != f.URL || r.Took <= 0 {
			t.Errorf("a request is told as %+v", r)
		}
	}
	if len(seen) != len(c.link.kinds) {
		t.Errorf("%d requests, want one for each kind", len(seen))
	}
	if f.saw("stream") != len(c.link.kinds) || f.saw("list") > 0 || f.saw("protobuf") != len(c.link.kinds) {
		t.Errorf("the server saw %v, want a stream in protobuf for each kind", f.seen)
	}
}
