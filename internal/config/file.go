package config

import (
	"errors"
	"fmt"
	"io"
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
	content, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return v.parse(path, content)
}

// maxSize is how large a file may be, in bytes. A ConfigMap has no room for more, and to parse it takes a hundred times
// as much.
const maxSize = 1 << 20

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing is written
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err == nil && len(content) > maxSize {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxSize)
	}
	return content, err
}

// readAgain is why a file cannot be read once more: a pipe or a device has given what it had, and may hold up whoever
// opens it for ever. One that is not there may come.
func readAgain(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("read configuration: %s: a file of this kind (%s) is read at the start alone", path, info.Mode().Type())
	}
	return nil
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
