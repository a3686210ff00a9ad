package kube

import (
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/transport"
)

// tellRequests wraps a transport. client-go's own hooks for metrics would do as well, but are one for all clients of a
// process.
func tellRequests(tell func(Request)) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper { return &requestTeller{next: next, tell: tell} }
}

type requestTeller struct {
	next http.RoundTripper
	tell func(Request)
}

// RoundTrip makes one request.
func (t *requestTeller) RoundTrip(in *http.Request) (*http.Response, error) {
	start := time.Now()
	out, err := t.next.RoundTrip(in)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(out.StatusCode)
	}
	t.tell(Request{Verb: in.Method, Code: code, Host: in.URL.Host, Took: time.Since(start)})
	return out, err
}

// WrappedRoundTripper is what client-go looks for to close idle connections.
func (t *requestTeller) WrappedRoundTripper() http.RoundTripper { return t.next }
