package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"

	"go.yaml.in/yaml/v3"
)

// decoder writes what a file says into Values, field by field, so that everything wrong is named in one go. A field
// that is null says nothing.
type decoder struct {
	v        *Values
	file     string
	root     *yaml.Node
	warnings []string
	errs     []error
}

func (d *decoder) place(path string) string {
	return fmt.Sprintf("%s:%d: %s", d.file, lineOf(d.root, path), path)
}

func (d *decoder) wrong(path, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("%s: %s", d.place(path), fmt.Sprintf(format, args...)))
}

func (d *decoder) document(fields map[string]any) {
	rest := maps.Clone(fields)
	delete(rest, "apiVersion")
	delete(rest, "kind")
	d.object("", rest, reflect.ValueOf(&d.v.as).Elem())
}

// object reads the fields of a struct, in the order of the file.
func (d *decoder) object(prefix string, fields map[string]any, into reflect.Value) {
	for _, name := range d.inOrder(prefix, fields) {
		path := prefix + name
		field, ok := fieldNamed(into, name)
		if !ok {
			d.unknown(path, name, fields[name], into)
			continue
		}
		d.value(path, fields[name], field)
	}
}

// inOrder are names as their lines follow each other.
func (d *decoder) inOrder(prefix string, fields map[string]any) []string {
	return slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(lineOf(d.root, prefix+a), lineOf(d.root, prefix+b)), strings.Compare(a, b))
	})
}

func (d *decoder) value(path string, said any, into reflect.Value) {
	if said == nil {
		return
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	_, readsItself := reflect.TypeAssert[json.Unmarshaler](into.Addr())
	d.v.where[path] = place{text: d.place(path)}
	switch is := said.(type) {
	case map[string]any:
		if into.Kind() == reflect.Struct && !readsItself {
			d.object(path+".", is, into)
			return
		}
		if into.Kind() == reflect.Map {
			d.table(path, is, into)
			return
		}
	case []any:
		if into.Kind() == reflect.Slice {
			d.list(path, is, into)
			return
		}
	}
	d.scalar(path, said, into)
}

func (d *decoder) table(path string, entries map[string]any, into reflect.Value) {
	into.Set(reflect.MakeMap(into.Type()))
	for _, key := range d.inOrder(path+".", entries) {
		entry := reflect.New(into.Type().Elem()).Elem()
		d.value(path+"."+key, entries[key], entry)
		into.SetMapIndex(reflect.ValueOf(key), entry)
	}
}

func (d *decoder) list(path string, entries []any, into reflect.Value) {
	into.Set(reflect.MakeSlice(into.Type(), len(entries), len(entries)))
	for i, entry := range entries {
		d.value(path+"["+strconv.Itoa(i)+"]", entry, into.Index(i))
	}
}

func (d *decoder) scalar(path string, said any, into reflect.Value) {
	text, err := json.Marshal(said)
	if err == nil {
		err = json.Unmarshal(text, into.Addr().Interface())
	}
	if err != nil {
		d.wrong(path, "%s: want %s", spoken(said), wanted(into))
	}
}

// spoken is a value as a message has it.
func spoken(said any) string {
	switch said := said.(type) {
	case map[string]any:
		return "fields"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(said)
	}
	return fmt.Sprint(said)
}

// wanted says what a field takes, in the words of YAML.
func wanted(into reflect.Value) string {
	switch into.Interface().(type) {
	case metav1.Duration:
		return `a string such as "30s"`
	case logsapi.TimeOrMetaDuration:
		return `a string such as "30s", or a whole number of nanoseconds`
	}
	switch into.Kind() {
	case reflect.String:
		return "a string, in quotes if need be"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32, reflect.Uint32:
		return fmt.Sprintf("a whole number of type %s", into.Kind())
	case reflect.Float32:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		if _, readsItself := reflect.TypeAssert[json.Unmarshaler](into.Addr()); readsItself {
			return "a quantity such as 64Ki"
		}
	}
	return "fields"
}
