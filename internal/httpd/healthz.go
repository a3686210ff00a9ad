package httpd

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// healthz answers whether the process answers: it has one check, "ping", which holds when the question arrives.
func healthz(pinged func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		excluded := slices.Contains(query["exclude"], "ping")
		if !excluded && pinged != nil {
			pinged()
		}
		plain(w)
		text := "ok"
		if query.Has("verbose") {
			text = verbose(query, excluded)
		}
		_, _ = io.WriteString(w, text) // the client may have left
	}
}

// verbose is the answer that names the check.
func verbose(query url.Values, excluded bool) string {
	var b strings.Builder
	if excluded {
		b.WriteString("[+]ping excluded: ok\n")
	} else {
		b.WriteString("[+]ping ok\n")
	}
	unknown := map[string]bool{}
	for _, name := range query["exclude"] {
		if name != "ping" {
			unknown[fmt.Sprintf("%q", name)] = true
		}
	}
	if len(unknown) > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(unknown)), ",")
		fmt.Fprintf(&b, "warn: some health checks cannot be excluded: no matches for %s\n", names)
	}
	b.WriteString("healthz check passed\n")
	return b.String()
}

func ping(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "ok") // the client may have left
}
