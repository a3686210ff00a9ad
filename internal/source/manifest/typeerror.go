package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// typeError says which field of an object has a value of a wrong type.
func typeError(js []byte, err error) (field, message string) {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "", err.Error()
	}
	return wrongField(js, wrong), given(wrong.Value) + "must be " + wanted(wrong.Type)
}

// given names a kind of JSON value in the words of YAML.
func given(value string) string {
	if number, ok := strings.CutPrefix(value, "number "); ok {
		return number + ": "
	}
	switch value {
	case "bool":
		return "is true or false, "
	case "array":
		return "is a list, "
	case "object":
		return "is an object, "
	}
	return "is a " + value + ", "
}

// wanted names a Go type in the words of YAML.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string (in quotes)"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

// wrongField is the path of the value that a type error is about. The error has the path without indexes and keys of
// maps, and an offset; but the offset is one within the value where the value's type reads itself.
func wrongField(js []byte, wrong *json.UnmarshalTypeError) string {
	within, first := "", ""
	kind, _, _ := strings.Cut(wrong.Value, " ")
	eachValue(js, func(at position, token json.Token, end int64) bool {
		rest, ok := strings.CutPrefix(at.path(false), wrong.Field)
		if !ok || (rest != "" && rest[0] != '.' && rest[0] != '[') {
			return true
		}
		if end == wrong.Offset {
			within = at.path(true)
			return false
		}
		if first == "" && rest == "" && kindOf(token) == kind {
			first = at.path(true)
		}
		return true
	})
	if within != "" {
		return within
	}
	return first
}

// kindOf is the kind of value that a token begins, as encoding/json names it.
func kindOf(token json.Token) string {
	switch token {
	case json.Delim('{'):
		return "object"
	case json.Delim('['):
		return "array"
	}
	switch token.(type) {
	case bool:
		return "bool"
	case string:
		return "string"
	}
	return "number"
}

// eachValue calls visit with every value in js, where it ends, or begins if it is an object or a list, until visit is
// false.
func eachValue(js []byte, visit func(at position, token json.Token, end int64) bool) {
	decoder := json.NewDecoder(bytes.NewReader(js))
	decoder.UseNumber()
	var at position
	for {
		token, err := decoder.Token()
		if err != nil {
			return
		}
		if at.next(token) && !visit(at, token, decoder.InputOffset()) {
			return
		}
	}
}

// position is where a stream of JSON tokens has got to.
type position []level

// level is one object or list around the current token.
type level struct {
	list  bool
	index int    // of the current value in a list; -1: none yet
	key   string // of the current value in an object
	value bool   // in an object: the key was read and its value comes next
}

// next moves on by one token, and reports whether that is, or begins, a value.
func (p *position) next(token json.Token) bool {
	stack := *p
	if token == json.Delim('}') || token == json.Delim(']') {
		*p = stack[:len(stack)-1]
		return false
	}
	if n := len(stack); n > 0 {
		top := &stack[n-1]
		if !top.list && !top.value {
			top.key, top.value = fmt.Sprint(token), true
			return false
		}
		top.index, top.value = top.index+1, false
	}
	if open, ok := token.(json.Delim); ok {
		*p = append(stack, level{list: open == '[', index: -1})
	}
	return true
}

// path is the path of the current value, with the indexes of lists or without. An object or a list that has just
// begun has an empty level of its own, which adds nothing.
func (p position) path(indexes bool) string {
	var b strings.Builder
	for _, l := range p {
		switch {
		case l.list && (l.index < 0 || !indexes), !l.list && l.key == "":
		case l.list:
			fmt.Fprintf(&b, "[%d]", l.index)
		case strings.ContainsAny(l.key, ".[]"):
			fmt.Fprintf(&b, "[%s]", l.key)
		case b.Len() > 0:
			b.WriteString("." + l.key)
		default:
			b.WriteString(l.key)
		}
	}
	return b.String()
}
