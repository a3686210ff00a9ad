package config

import (
	"fmt"
	"reflect"
	"strings"
)

// formerFields are those that older versions had, and what has become of them.
var formerFields = map[string]string{
	"resourceContainer": "kube-proxy has not had it since 1.24",
	"udpIdleTimeout":    "it was of kube-proxy's mode userspace; sluice.userspace.udpIdleTimeout is that of Sluice's",
	"conntrack.max":     "conntrack.maxPerCore and conntrack.min took its place",
}

// unknown tells of a field that is not there. kube-proxy starts in spite of it. What is empty was never meant.
func (d *decoder) unknown(path, name string, said any, in reflect.Value) {
	if saysNothing(said) {
		return
	}
	told := fmt.Sprintf("%s: no such field in %s of %s", d.place(path), kind, apiVersion)
	if former, ok := formerFields[path]; ok {
		told += "; " + former
	} else if near := nearest(name, in.Type()); near != "" {
		told += fmt.Sprintf("; is %s meant?", near)
	}
	d.warnings = append(d.warnings, told)
}

// nearest is the field of a struct that name may have been meant for.
func nearest(name string, in reflect.Type) string {
	for field := range in.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag != "" && misspelt(name, tag) {
			return tag
		}
		if field.Anonymous && tag == "" {
			if near := nearest(name, field.Type); near != "" {
				return near
			}
		}
	}
	return ""
}

// misspelt reports whether two names differ in case, or in one letter that is another, too many or missing.
func misspelt(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1
}

func saysNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == "" || v == "0s"
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, below := range v {
			if !saysNothing(below) {
				return false
			}
		}
		return true
	}
	return false
}
