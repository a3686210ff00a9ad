package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	apiVersion = "kubeproxy.config.k8s.io/v1alpha1"
	kind       = "KubeProxyConfiguration"
)

// read lays the file at path over v. The warnings name what the file says in vain.
func (v *Values) read(path string) (warnings []string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return v.parse(path, content)
}

// parse is read of what a file has. Errors and warnings name the file, the line and the field.
func (v *Values) parse(path string, content []byte) (warnings []string, err error) {
	text, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	// A field given twice is a mistake, but kube-proxy starts with it; so it is told, and the last one counts.
	if _, err := yaml.YAMLToJSONStrict(content); err != nil {
		warnings = append(warnings, path+": "+strings.Join(strings.Fields(err.Error()), " "))
	}
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &fields); err != nil {
		return nil, fmt.Errorf("configuration file %s: it is no mapping of fields", path)
	}
	root, second := parseLines(content)
	if second > 0 {
		warnings = append(warnings, fmt.Sprintf("%s:%d: only the first document of a configuration file is read", path, second))
	}
	d := decoder{v: v, file: path, root: root, warnings: warnings}
	if err := d.checkType(fields); err != nil {
		return d.warnings, err
	}
	d.document(fields)
	v.fileMode = string(v.as.Mode)
	return d.warnings, errors.Join(d.errs...)
}

// checkType refuses another kind of object, of which no field can be read.
func (d *decoder) checkType(fields map[string]any) error {
	var errs []error
	check := func(field, want string) {
		switch got, given := fields[field]; {
		case !given:
			errs = append(errs, fmt.Errorf("%s: missing, want %s", d.place(field), want))
		case got != want:
			errs = append(errs, fmt.Errorf("%s: %q, want %s", d.place(field), fmt.Sprint(got), want))
		}
	}
	check("apiVersion", apiVersion)
	check("kind", kind)
	return errors.Join(errs...)
}
