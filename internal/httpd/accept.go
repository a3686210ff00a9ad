package httpd

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// format is one way to write a page.
type format struct{ kind, sub string }

// The formats of pages, in the order in which kube-proxy offers them.
var (
	asJSON  = format{"application", "json"}
	asYAML  = format{"application", "yaml"}
	asText  = format{"text", "plain"}
	formats = []format{asJSON, asYAML, asText}
)

func (f format) String() string { return f.kind + "/" + f.sub }

// clause is one alternative of an Accept header: "application/json;g=config.k8s.io;v=v1beta1;as=Statusz;q=0.5".
type clause struct {
	format
	as      object
	quality float64
}

// object is the API object that a client asks for.
type object struct{ group, version, kind string }

// choose is the best of what a client accepts, or ok is false. Text is of no object; the others are of a version of
// kind, which has to be named.
func choose(h http.Header, kind string) (f format, version string, ok bool) {
	header := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return asText, "", true
	}
	for _, c := range clauses(header) {
		for _, f := range formats {
			if c.matches(f) && c.as.allowed(f, kind) {
				return f, c.as.version, true
			}
		}
	}
	return format{}, "", false
}

// clauses reads the header, best first. What is no media type is left out.
func clauses(header string) (all []clause) {
	for part := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		kind, sub, ok := strings.Cut(media, "/")
		if err != nil || !ok {
			continue
		}
		c := clause{format{kind, sub}, object{params["g"], params["v"], params["as"]}, 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			c.quality = q
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return all
}

func (c clause) matches(f format) bool {
	switch c.format {
	case f, format{f.kind, "*"}, format{"*", "*"}:
		return true
	}
	return false
}

func (o object) allowed(f format, kind string) bool {
	if f == asText {
		return o == object{}
	}
	return o == object{pagesGroup, "v1beta1", kind} || o == object{pagesGroup, "v1alpha1", kind}
}
