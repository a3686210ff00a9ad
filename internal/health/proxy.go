package health

import (
	"encoding/json"
	"net/http"
	"time"

	"sluice/internal/model"
)

// State is how far the proxy is behind what it was told.
type State struct {
	Family [2]*FamilyState // nil: the family is not served here
}

// FamilyState is that of one address family.
type FamilyState struct {
	Updated time.Time // when its rules last became what is wanted; zero: not yet
	Healthy bool      // nothing has waited for too long
}

// Proxy answers whether the proxy does its work, and whether its node can take traffic.
type Proxy struct {
	state    func() State
	eligible func() bool
	count    func(path string, code int)
	now      func() time.Time
}

// NewProxy makes a Proxy of functions that it calls for each question, from any goroutine. eligible tells whether load
// balancers may send traffic to the node, see [Eligible]; nil where nobody can tell, as without a cluster: then they
// may. count, which may be nil, is told each answer: "healthz" or "livez", and its status.
func NewProxy(state func() State, eligible func() bool, count func(path string, code int)) *Proxy {
	p := &Proxy{state: state, eligible: eligible, count: count, now: time.Now}
	if p.eligible == nil {
		p.eligible = func() bool { return true }
	}
	if p.count == nil {
		p.count = func(string, int) {}
	}
	return p
}

// Eligible reports whether load balancers may send traffic to the node that n, which is nil if there is no such
// object, stands for.
func Eligible(n *model.Node) bool { return n != nil && !n.Leaving }

// Healthy reports whether every family is.
func (p *Proxy) Healthy() bool { return p.state().healthy() }

func (s State) healthy() bool {
	for _, f := range s.Family {
		if f != nil && !f.Healthy {
			return false
		}
	}
	return true
}

// Handler answers /healthz and /livez, and that it finds nothing else.
func (p *Proxy) Handler() http.Handler {
	m := http.NewServeMux()
	m.Handle("/healthz", p.Healthz())
	m.Handle("/livez", p.Livez())
	return m
}

// Healthz answers load balancers: 200 if the proxy is healthy and the node may take traffic, else 503.
func (p *Proxy) Healthz() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		eligible := p.eligible()
		p.answer(w, "healthz", &eligible)
	})
}

// Livez answers who would restart the proxy: 200 if it is healthy, else 503. A node that leaves is no reason.
func (p *Proxy) Livez() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { p.answer(w, "livez", nil) })
}

// proxyBody is the answer as kube-proxy writes it.
type proxyBody struct {
	LastUpdated  time.Time             `json:"lastUpdated"`
	CurrentTime  time.Time             `json:"currentTime"`
	NodeEligible *bool                 `json:"nodeEligible,omitempty"`
	Healthy      bool                  `json:"healthy"` // the proxy, whatever the node
	Status       map[string]familyBody `json:"status,omitempty"`
}

type familyBody struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// answer tells the state; eligible is nil if the node does not matter.
func (p *Proxy) answer(w http.ResponseWriter, path string, eligible *bool) {
	b := p.state().body(p.now())
	b.NodeEligible = eligible
	code := http.StatusServiceUnavailable
	if b.Healthy && (eligible == nil || *eligible) {
		code = http.StatusOK
		// Once this was when the proxy last looked, which it did all the time. Readers still expect it to be recent.
		b.LastUpdated = b.CurrentTime
	}
	text, err := json.Marshal(b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.count(path, code)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may have left
}

// body leaves out a family that has yet to be updated, unless that takes too long.
func (s State) body(now time.Time) proxyBody {
	b := proxyBody{CurrentTime: now, Healthy: s.healthy(), Status: map[string]familyBody{}}
	for _, family := range model.Families {
		f := s.Family[family]
		if f == nil || f.Updated.IsZero() && f.Healthy {
			continue
		}
		b.Status[family.String()] = familyBody{f.Updated, f.Healthy}
		if f.Updated.After(b.LastUpdated) {
			b.LastUpdated = f.Updated
		}
	}
	return b
}
