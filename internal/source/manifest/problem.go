package manifest

import (
	"fmt"
	"strings"

	"sluice/internal/source/convert"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Problem is something wrong or remarkable in a manifest, with its place.
type Problem struct {
	File     string
	Document int    // counted from 1 within the file; 0: the file as a whole
	Line     int    // counted from 1 within the file; 0: unknown
	Object   string // such as "Service default/web"; empty where unknown
	Field    string // such as "spec.ports[0].port"; empty for the object as a whole
	Message  string
	Severity convert.Severity
}

// Error is the Problem on one line, such as
// "web.yaml:12: Service default/web: spec.ports[0].port: 70000: must be 1-65535".
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Severity != convert.Error {
		b.WriteString(": " + p.Severity.String())
	}
	for _, part := range []string{p.Object, p.Field, p.Message} {
		if part != "" {
			b.WriteString(": " + oneLine(part))
		}
	}
	return b.String()
}

// noManifests is that a folder has none. Who gave it meant another one, or files that have other names.
func noManifests(folder string) Problem {
	return Problem{
		File: folder, Severity: convert.Warning,
		Message: "no manifests in this folder: files are read whose names end in " + strings.Join(endings, " or ") + ", and no folders below",
	}
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
