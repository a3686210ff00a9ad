package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Format is how something is printed.
type Format string

// The formats, by their names after -o.
const (
	Text Format = "text"
	Wide Format = "wide" // text with more columns, where there are such
	JSON Format = "json"
	YAML Format = "yaml"
)

// texter is what can be printed for people.
type texter interface{ text(io.Writer) error }

// show writes v in format f. JSON and YAML have the same fields.
func show(w io.Writer, f Format, v texter) error {
	if f == Text {
		return v.text(w)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print as %s: %w", f, err)
	}
	if f == YAML {
		return toYAML(w, b.Bytes())
	}
	_, err := w.Write(b.Bytes())
	return err
}

// toYAML keeps the names and the order of the fields that the JSON has.
func toYAML(w io.Writer, text []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("print as yaml: %w", err)
	}
	plain(&n)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&n); err != nil {
		return fmt.Errorf("print as yaml: %w", err)
	}
	return e.Close()
}

// plain takes JSON's braces and quotes away, save where a text without them would be no text.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}
