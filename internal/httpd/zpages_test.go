package httpd

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"

// started is the one part of a page that is another each time.
var started = regexp.MustCompile(`Started: \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \w+ \d{4}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func TestPages(t *testing.T) {
	const (
		plainText  = "200\nContent-Type: text/plain; charset=utf-8\n\n"
		statusText = plainText + "\nkube-proxy statusz\n" + warning + "\nSTART\nUp: 2 hr 03 min 04 sec\nGo version: go1.26.8\nBinary version: 1.37\nEmulation version: 1.37\nPaths: /configz /flagz /healthz /metrics /proxyMode\n"
		flagsText  = plainText + "\nkube-proxy flagz\n" + warning + "bind-address=\nconfig=a b\nv=2\n"
		refused    = "406\nContent-Type: application/json\n\n" + `{
  "kind": "Status",
  "apiVersion": "v1",
  "metadata": {},
  "status": "Failure",
  "message": "only the following media types are accepted: application/json, application/yaml, text/plain",
  "reason": "NotAcceptable",
  "code": 406
}`
		flagsJSON = `{
  "kind": "Flagz",
  "apiVersion": "config.k8s.io/v1beta1",
  "metadata": {
    "name": "kube-proxy"
  },
  "flags": {
    "bind-address": "",
    "config": "a b",
    "v": "2"
  }
}`
		statusJSON = `{
  "kind": "Statusz",
  "apiVersion": "config.k8s.io/v1beta1",
  "metadata": {
    "name": "kube-proxy"
  },
  "startTime": "START",
  "uptimeSeconds": 7384,
  "goVersion": "go1.26.8",
  "binaryVersion": "1.37",
  "emulationVersion": "1.37",
  "paths": [
    "/configz",
    "/flagz",
    "/healthz",
    "/metrics",
    "/proxyMode"
  ]
}`
		statusYAML = `apiVersion: config.k8s.io/v1alpha1
binaryVersion: "1.37"
emulationVersion: "1.37"
goVersion: go1.26.8
kind: Statusz
metadata:
  name: kube-proxy
paths:
- /configz
- /flagz
- /healthz
- /metrics
- /proxyMode
startTime: "START"
uptimeSeconds: 7384
`
		deprecated = `Warning: 299 - "This version of the statusz endpoint is deprecated. Please use a newer version."` + "\n"
	)
	p := newPort()
	for _, tt := range []struct{ path, accept, want string }{
		{"/statusz", "", statusText},
		{"/flagz", "", flagsText},
		{"/statusz", "*/*", statusText},
		{"/statusz", "text/html, text/*;q=0.5", statusText},
		{"/statusz", "application/json, text/plain;q=0.1", statusText},
		{"/statusz", "text/plain;q=0.1, application/json;g=config.k8s.io;v=v1beta1;as=Statusz;q=0.2", "200\nContent-Type: application/json;g=config.k8s.io;v=v1beta1;as=Statusz\n\n" + statusJSON},
		{"/flagz", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", "200\nContent-Type: application/json;g=config.k8s.io;v=v1beta1;as=Flagz\n\n" + flagsJSON},
		{"/statusz", "application/yaml;as=Statusz;v=v1alpha1;g=config.k8s.io", "200\nContent-Type: application/yaml;g=config.k8s.io;v=v1alpha1;as=Statusz\n" + deprecated + "\n" + statusYAML},
		{"/flagz", "application/json", refused},
		{"/flagz", "text/html", refused},
		{"/flagz", "application/json;as=Statusz;v=v1beta1;g=config.k8s.io", refused},
		{"/flagz", "application/json;as=Flagz;v=v1;g=config.k8s.io", refused},
	} {
		got := started.ReplaceAllString(told(p.ask("GET", tt.path, "", tt.accept)), "START")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s as %q (-want +got):\n%s", tt.path, tt.accept, diff)
		}
	}
}

func TestNoPages(t *testing.T) {
	p := &port{Handler: MetricsMux(MuxOptions{})}
	for _, path := range []string{"/flagz", "/statusz", "/debug/pprof/", "/metrics"} {
		if w := p.ask("GET", path, ""); w.Code != 404 {
			t.Errorf("%s: %d, want that what was not handed in is not found", path, w.Code)
		}
	}
}
