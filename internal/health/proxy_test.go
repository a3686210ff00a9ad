package health

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
)

var (
	noon    = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	earlier = noon.Add(-time.Minute)
	before  = noon.Add(-time.Hour)
)

// The texts are what kube-proxy 1.37.2 was seen to answer, with other times.
func TestProxyAnswers(t *testing.T) {
	both := State{[2]*FamilyState{model.IPv4: {before, true}, model.IPv6: {earlier, true}}}
	late := State{[2]*FamilyState{model.IPv4: {before, false}, model.IPv6: {earlier, true}}}
	for name, tt := range map[string]struct {
		state         State
		eligible      bool
		code          int
		healthz       string
		livezCode     int
		livezContents string
	}{
		"both families are up to date": {
			both, true,
			200, `{"lastUpdated":"2026-11-30T12:00:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","nodeEligible":true,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-30T11:00:00.123456789Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-30T11:59:00.123456789Z","healthy":true}}}`,
			200, `{"lastUpdated":"2026-11-30T12:00:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-30T11:00:00.123456789Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-30T11:59:00.123456789Z","healthy":true}}}`,
		},
		"the node leaves": {
			both, false,
			503, `{"lastUpdated":"2026-11-30T11:59:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","nodeEligible":false,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-30T11:00:00.123456789Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-30T11:59:00.123456789Z","healthy":true}}}`,
			200, `{"lastUpdated":"2026-11-30T12:00:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-30T11:00:00.123456789Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-30T11:59:00.123456789Z","healthy":true}}}`,
		},
		"a family is late": {
			late, true,
			503, `{"lastUpdated":"2026-11-30T11:59:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","nodeEligible":true,"healthy":false,"status":{"IPv4":{"lastUpdated":"2026-11-30T11:00:00.123456789Z","healthy":false},"IPv6":{"lastUpdated":"2026-11-30T11:59:00.123456789Z","healthy":true}}}`,
			503, `{"lastUpdated":"2026-11-30T11:59:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","healthy":false,"status":{"IPv4":{"lastUpdated":"2026-11-30T11:00:00.123456789Z","healthy":false},"IPv6":{"lastUpdated":"2026-11-30T11:59:00.123456789Z","healthy":true}}}`,
		},
		"one family, not yet updated": {
			State{[2]*FamilyState{model.IPv6: {Healthy: true}}},
			true,
			200, `{"lastUpdated":"2026-11-30T12:00:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","nodeEligible":true,"healthy":true}`,
			200, `{"lastUpdated":"2026-11-30T12:00:00.123456789Z","currentTime":"2026-11-30T12:00:00.123456789Z","healthy":true}`,
		},
		"one family, never updated in time": {
			State{[2]*FamilyState{model.IPv4: {}}},
			true,
			503, `{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"2026-11-30T12:00:00.123456789Z","nodeEligible":true,"healthy":false,"status":{"IPv4":{"lastUpdated":"0001-01-01T00:00:00Z","healthy":false}}}`,
			503, `{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"2026-11-30T12:00:00.123456789Z","healthy":false,"status":{"IPv4":{"lastUpdated":"0001-01-01T00:00:00Z","healthy":false}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var counted []string
			p := NewProxy(func() State { return tt.state }, func() bool { return tt.eligible }, func(path string, code int) {
				counted = append(counted, fmt.Sprint(path, " ", code))
			})
			p.now = func() time.Time { return noon }
			got := []string{answered(p, "/healthz"), answered(p, "/livez")}
			want := []string{fmt.Sprint(tt.code, " ", tt.healthz), fmt.Sprint(tt.livezCode, " ", tt.livezContents)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{fmt.Sprint("healthz ", tt.code), fmt.Sprint("livez ", tt.livezCode)}, counted); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if p.Healthy() != (tt.livezCode == 200) {
				t.Errorf("Healthy() = %v, want as /livez says", p.Healthy())
			}
		})
	}
}

func answered(p *Proxy, path string) string {
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
	return fmt.Sprint(w.Code, " ", w.Body)
}

func TestProxyHeaders(t *testing.T) {
	p := NewProxy(func() State { return State{} }, nil, nil)
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	want := http.Header{"Content-Type": {"application/json"}, "X-Content-Type-Options": {"nosniff"}}
	if diff := cmp.Diff(want, w.Header()); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if w.Code != http.StatusOK {
		t.Errorf("nobody knows of a Node: status %d, want 200", w.Code)
	}
	for _, path := range []string{"/", "/healthz/", "/readyz"} {
		if got := answered(p, path); got != "404 404 page not found\n" {
			t.Errorf("%s: %q, want that it is not found", path, got)
		}
	}
}

func TestEligible(t *testing.T) {
	for _, tt := range []struct {
		node *model.Node
		want bool
	}{{nil, false}, {&model.Node{}, true}, {&model.Node{Leaving: true}, false}} {
		if got := Eligible(tt.node); got != tt.want {
			t.Errorf("Eligible(%+v) = %v", tt.node, got)
		}
	}
}
