package httpd

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// MuxOptions is what the metrics port answers. Functions are called for each request, from any goroutine.
type MuxOptions struct {
	Component string       // what /flagz and /statusz call the program
	Metrics   http.Handler // /metrics
	SLIs      http.Handler // /metrics/slis
	// Pinged, if set, is told each time that /healthz made its one check, "ping", which does not fail.
	Pinged    func()
	ProxyMode func() string            // as the configuration names it: "nftables"
	Config    func() any               // what marshals to the KubeProxyConfiguration, v1alpha1
	Flags     func() map[string]string // flags and their values; nil: no /flagz
	Status    func() Status            // nil: no /statusz
	Profiling func() bool              // whether /debug is served; nil: never
	Verbosity func(level int32) error  // sets the verbosity of logs
}

// Status is what /statusz tells of the process.
type Status struct {
	Started          time.Time
	GoVersion        string
	BinaryVersion    string
	EmulationVersion string // empty: none
}

// mux is kube-proxy's: a path leads to its handler alone, so that /healthz/ is not found; only /debug has prefixes.
type mux struct {
	paths map[string]http.Handler
	debug func() bool
	o     MuxOptions
}

// MetricsMux answers at the paths of kube-proxy's metrics port, as kube-proxy does.
func MetricsMux(o MuxOptions) http.Handler {
	m := &mux{debug: o.Profiling, o: o, paths: map[string]http.Handler{
		"/healthz":      healthz(o.Pinged),
		"/healthz/ping": http.HandlerFunc(ping),
		"/metrics":      o.Metrics,
		"/metrics/slis": o.SLIs,
		"/proxyMode":    http.HandlerFunc(o.proxyMode),
		"/configz":      http.HandlerFunc(o.configz),
	}}
	if o.Flags != nil {
		m.paths["/flagz"] = o.flagz()
	}
	if o.Status != nil {
		m.paths["/statusz"] = o.statusz(m.listed()) // which does not list itself, as upstream
	}
	return m
}

// listed are the first parts of all paths, sorted.
func (m *mux) listed() (all []string) {
	for path := range m.paths {
		first, _, _ := strings.Cut(path[1:], "/")
		all = append(all, "/"+first)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ServeHTTP implements http.Handler.
func (m *mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := m.paths[r.URL.Path]
	if h == nil && m.debug != nil && m.debug() {
		h = m.o.debug(r.URL.Path)
	}
	if h == nil {
		h = http.NotFoundHandler()
	}
	h.ServeHTTP(w, r)
}

func (o *MuxOptions) proxyMode(w http.ResponseWriter, _ *http.Request) {
	plain(w)
	_, _ = fmt.Fprint(w, o.ProxyMode()) // the client may have left
}

// plain says that the answer is text, and no browser should take it for anything else.
func plain(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
