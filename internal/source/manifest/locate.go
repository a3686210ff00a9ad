package manifest

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lines finds the line of a field in a document. The zero value reads the document when it is first asked.
type lines struct {
	read bool
	root *yaml.Node // nil: the text cannot be read
}

// of is the line of the field at a path such as "items[2].spec.ports[0].port", counted from 1; if there is no such
// field, of the nearest thing around it.
func (l *lines) of(text, path string) int {
	if !l.read {
		l.read = true
		var n yaml.Node
		if yaml.Unmarshal([]byte(text), &n) == nil && len(n.Content) > 0 {
			l.root = n.Content[0]
		}
	}
	if l.root == nil {
		return 1
	}
	line, node := l.root.Line, l.root
	for _, step := range steps(path) {
		key, value := child(node, step)
		if value == nil {
			break
		}
		line, node = key.Line, value
	}
	return line
}

// locate gives every problem its line.
func (d *document) locate() {
	for i := range d.problems {
		d.problems[i].line = d.lineAt(d.problems[i].Field)
	}
	for _, o := range d.objects {
		for i := range o.problems {
			o.problems[i].line = d.lineAt(join(o.path, o.problems[i].Field))
		}
	}
}

// lineAt is the line of the field at a path.
func (d *document) lineAt(path string) int {
	if d.text == "" {
		return d.begin
	}
	return d.lines.of(d.text, path)
}

// forget drops the text, which takes more memory than all that is made of it, unless the line of a field may still be
// asked for.
func (d *document) forget() {
	d.lines = lines{}
	if !slices.ContainsFunc(d.objects, (*object).toldLater) {
		d.begin, d.text = firstLine(d.text), ""
	}
}

// toldLater reports whether there may be problems that show only beside other objects, at lines within the document.
func (o *object) toldLater() bool {
	s, isService := o.value.(service)
	_, isUnused := o.value.(unused)
	return o.path != "" || isUnused || isService && s.selector != nil
}

// firstLine is the first line that is neither blank nor a comment nor a YAML directive.
func firstLine(text string) int {
	n := 1
	for line := range strings.Lines(text) {
		if !blank([]byte(line)) {
			break
		}
		n++
	}
	return n
}

// steps takes a path apart: "a.b[0].c[x.y/z]" is a, b, 0, c, x.y/z.
func steps(path string) []string {
	var out []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			step, after, _ := strings.Cut(rest, "]")
			out, path = append(out, step), strings.TrimPrefix(after, ".")
			continue
		}
		n := strings.IndexAny(path, ".[")
		if n < 0 {
			n = len(path)
		}
		out, path = append(out, path[:n]), strings.TrimPrefix(path[n:], ".")
	}
	return out
}

// child is the value under a key or an index of a node, and the node that shows where it begins.
func child(n *yaml.Node, step string) (key, value *yaml.Node) {
	for depth := 0; n.Kind == yaml.AliasNode && depth < maxNesting; depth++ {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	return nil, nil
}
