package httpd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// port is a metrics port with all that it may have.
type port struct {
	http.Handler
	profiling atomic.Bool
	level     int32
	pings     int
}

func newPort() *port {
	p := &port{}
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
	}
	p.Handler = MetricsMux(MuxOptions{
		Component: "kube-proxy", Metrics: text("all"), SLIs: text("some"),
		Pinged:    func() { p.pings++ },
		ProxyMode: func() string { return "nftables" },
		Config:    func() any { return map[string]string{"mode": "nftables"} },
		Flags:     func() map[string]string { return map[string]string{"v": "2", "config": "a b", "bind-address": ""} },
		Status: func() Status {
			return Status{time.Now().Add(-(2*time.Hour + 3*time.Minute + 4*time.Second + 500*time.Millisecond)), "go1.26.8", "1.37", "1.37"}
		},
		Profiling: p.profiling.Load,
		Verbosity: func(level int32) error {
			if level > 10 {
				return errors.New("too loud")
			}
			p.level = level
			return nil
		},
	})
	return p
}

func (p *port) ask(method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if len(header) > 0 {
		r.Header.Set("Accept", header[0])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// told is an answer as one text: its status, the headers that matter, and the body.
func told(w *httptest.ResponseRecorder) string {
	text := fmt.Sprintln(w.Code)
	for _, name := range []string{"Content-Type", "X-Content-Type-Options", "Location", "Warning"} {
		if v := w.Header().Get(name); v != "" {
			text += name + ": " + v + "\n"
		}
	}
	return text + "\n" + w.Body.String()
}

const (
	textHeaders = "Content-Type: text/plain; charset=utf-8\nX-Content-Type-Options: nosniff\n"
	notFound    = "404\n" + textHeaders + "\n404 page not found\n"
	lineHeaders = "Content-Type: text/plain\nX-Content-Type-Options: nosniff\n"
)

// All these answers were seen from kube-proxy 1.37.2.
func TestAnswers(t *testing.T) {
	p := newPort()
	p.profiling.Store(true)
	for _, tt := range []struct{ method, target, body, want string }{
		{"GET", "/healthz", "", "200\n" + textHeaders + "\nok"},
		{"POST", "/healthz", "", "200\n" + textHeaders + "\nok"},
		{"GET", "/healthz?verbose", "", "200\n" + textHeaders + "\n[+]ping ok\nhealthz check passed\n"},
		{"GET", "/healthz?exclude=ping", "", "200\n" + textHeaders + "\nok"},
		{"GET", "/healthz?verbose&exclude=ping&exclude=zz&exclude=aa", "", "200\n" + textHeaders + "\n[+]ping excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"aa\",\"zz\"\nhealthz check passed\n"},
		{"GET", "/healthz/", "", notFound},
		{"GET", "/livez", "", notFound},
		{"GET", "/", "", notFound},
		{"GET", "/proxyMode", "", "200\n" + textHeaders + "\nnftables"},
		{"GET", "/configz", "", "200\nContent-Type: application/json\nX-Content-Type-Options: nosniff\n\n{\"kubeproxy.config.k8s.io\":{\"mode\":\"nftables\"}}"},
		{"GET", "/debug/pprof", "", "302\nContent-Type: text/html; charset=utf-8\nLocation: /debug/pprof/\n\n<a href=\"/debug/pprof/\">Found</a>.\n\n"},
		{"GET", "/debug/pprof/cmdline", "", "404\n" + textHeaders + "\nUnknown profile\n"},
		{"GET", "/debug", "", notFound},
		{"GET", "/debug/flags/v", "", "406\n" + lineHeaders + "\nunsupported http method\n"},
		{"PUT", "/debug/flags/v", "4", "200\n" + lineHeaders + "\nsuccessfully set klog.logging.verbosity to 4\n"},
		{"PUT", "/debug/flags/v", "x", "400\n" + lineHeaders + "\nstrconv.ParseUint: parsing \"x\": invalid syntax\n"},
		{"PUT", "/debug/flags/v", "99999999999", "400\n" + lineHeaders + "\nstrconv.ParseUint: parsing \"99999999999\": value out of range\n"},
		{"PUT", "/debug/flags/v", "3000000000", "400\n" + lineHeaders + "\nfailed set klog.logging.verbosity 3000000000: strconv.ParseInt: parsing \"3000000000\": value out of range\n"},
	} {
		if diff := cmp.Diff(tt.want, told(p.ask(tt.method, tt.target, tt.body))); diff != "" {
			t.Errorf("%s %s %q (-want +got):\n%s", tt.method, tt.target, tt.body, diff)
		}
	}
	if p.level != 4 {
		t.Errorf("verbosity %d, want 4", p.level)
	}
	if p.pings != 3 {
		t.Errorf("%d pings, want one of each /healthz that did not exclude it", p.pings)
	}
}

func TestHandedIn(t *testing.T) {
	p := newPort()
	for target, want := range map[string]string{"/metrics": "all", "/metrics/slis": "some", "/healthz/ping": "ok"} {
		if w := p.ask("GET", target, ""); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", target, w.Code, w.Body, want)
		}
	}
}

func TestProfilingChanges(t *testing.T) {
	p := newPort()
	paths := []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/symbol", "/debug/flags", "/debug/flags/"}
	for _, on := range []bool{false, true, false} {
		p.profiling.Store(on)
		for _, path := range paths {
			if w := p.ask("GET", path, ""); (w.Code == 200) != on {
				t.Errorf("profiling %v: %s answers %d", on, path, w.Code)
			}
		}
	}
}

func TestVerbosityRefused(t *testing.T) {
	p := newPort()
	p.profiling.Store(true)
	want := "400\n" + lineHeaders + "\nfailed set klog.logging.verbosity 11: too loud\n"
	if diff := cmp.Diff(want, told(p.ask("PUT", "/debug/flags/v", "11"))); diff != "" {
		t.Error(diff)
	}
	if w := p.ask("PUT", "/debug/flags/v", strings.Repeat("0", 1000)); w.Code != 400 || !strings.Contains(w.Body.String(), "too large") {
		t.Errorf("a long body: %d %q, want that it is refused", w.Code, w.Body)
	}
}

// A profile takes as long as its client wishes, whatever the limits of other answers.
func TestProfileMayTakeLong(t *testing.T) {
	p := newPort()
	p.profiling.Store(true)
	server := httptest.NewUnstartedServer(p)
	const limit = 2 * time.Second // within which the request must have come, however busy the machine
	server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
	server.Start()
	defer server.Close()
	began := time.Now()
	resp, err := server.Client().Get(server.URL + "/debug/pprof/trace?seconds=3")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
		t.Errorf("status %d, error %v, want a whole trace", resp.StatusCode, err)
	}
	if took := time.Since(began); took <= limit {
		t.Errorf("the trace covers %v, want the 3 s that were asked for", took)
	}
}
