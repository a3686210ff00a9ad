package httpd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pagesGroup is the API group of the objects that pages are.
const pagesGroup = "config.k8s.io"

// page is /flagz or /statusz: text for people, or an object for programs.
type page struct {
	component string
	kind      string         // of the object: "Flagz"
	text      func() string  // without the heading
	object    func(meta) any // marshals to the object
}

// meta are the fields that every object has.
type meta struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name string `json:"name,omitempty"`
	} `json:"metadata"`
}

// refusal is a Status object, which tells a client why it gets no other.
type refusal struct {
	meta
	Status  string `json:"status"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Code    int    `json:"code"`
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, version, ok := choose(r.Header, p.kind)
	switch {
	case !ok:
		p.refuse(w)
	case f == asText:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintf(w, "\n%s %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting "+
			"compatibility guarantees and is for debugging purposes only.\n%s", p.component, p.path(), p.text())
	default:
		p.write(w, f, version)
	}
}

func (p *page) path() string { return strings.ToLower(p.kind) }

func (p *page) write(w http.ResponseWriter, f format, version string) {
	text, err := marshal(f, p.object(p.meta(version)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if version == "v1alpha1" {
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", "This version of the "+p.path()+" endpoint is deprecated. Please use a newer version."))
	}
	w.Header().Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", f, pagesGroup, version, p.kind))
	_, _ = w.Write(text) // the client may have left
}

func (p *page) meta(version string) meta {
	m := meta{Kind: p.kind, APIVersion: pagesGroup + "/" + version}
	m.Metadata.Name = p.component
	return m
}

func (p *page) refuse(w http.ResponseWriter) {
	r := refusal{
		meta: meta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: "NotAcceptable", Code: http.StatusNotAcceptable,
		Message: fmt.Sprintf("only the following media types are accepted: %s, %s, %s", asJSON, asYAML, asText),
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.Code)
	_, _ = w.Write(text) // the client may have left
}

// marshal writes JSON with the fields in their order, or YAML with sorted ones, as kube-proxy does.
func marshal(f format, v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil || f == asJSON {
		return text, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil { // JSON is YAML, and numbers stay whole
		return nil, err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	err = e.Encode(fields)
	return b.Bytes(), err
}
