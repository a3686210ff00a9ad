package config

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseLines is the document that lineOf looks in, nil if it cannot be read that way; and the line of a second one, 0 if
// there is none.
func parseLines(content []byte) (first *yaml.Node, second int) {
	var n, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if decoder.Decode(&n) != nil || len(n.Content) == 0 {
		return nil, 0
	}
	if decoder.Decode(&more) == nil && len(more.Content) > 0 {
		second = more.Content[0].Line
	}
	return n.Content[0], second
}

// lineOf is the line of the field at a path such as "featureGates.A" or "nodePortAddresses[1]", counted from 1; of what
// is around it if there is none.
func lineOf(n *yaml.Node, path string) int {
	if n == nil {
		return 1
	}
	line := n.Line
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		key, value := below(n, step)
		if value == nil {
			break
		}
		line, n = key.Line, value
	}
	return line
}

// below is what a step leads to, and the node that shows where it begins. Of a key given twice the last one counts.
func below(n *yaml.Node, step string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(strings.Trim(step, "[]")); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yaml.MappingNode:
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	return nil, nil
}
