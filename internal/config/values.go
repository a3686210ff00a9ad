package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Values is the configuration as it was written, before [Values.Resolve] checks it.
type Values struct {
	as    File
	where map[string]place // by the path of a field
	// fileMode is what the file says, whatever the flags do.
	fileMode string

	// What flags alone say.
	master                  string
	healthPort, metricsPort port
}

// place is where a value was written, like "--cluster-cidr" or "kube-proxy.yaml:3: clusterCIDR".
type place struct {
	text string
	flag bool
}

// port is what one of the flags that kube-proxy has given up says.
type port struct {
	is    int32
	given bool
	where string
}

func newValues() Values { return Values{where: map[string]place{}} }

// at is where the value of a field was written. That of an element of a list is where the list was, if it was a flag.
func (v *Values) at(path string) string {
	if p, ok := v.where[path]; ok {
		return p.text
	}
	if list, _, ok := strings.Cut(path, "["); ok {
		return v.at(list)
	}
	return "default " + path[strings.LastIndexByte(path, '.')+1:]
}

// wrong is the error of a field's value, which said names.
func (v *Values) wrong(path string, said any, format string, args ...any) error {
	return fmt.Errorf("%s: %v: %s", v.at(path), said, fmt.Sprintf(format, args...))
}

// assign writes a flag's value into a field.
func (v *Values) assign(path, flag string, is any) {
	put(v.field(path), is)
	v.where[path] = place{"--" + flag, true}
}

// field is the field at a path, which there is.
func (v *Values) field(path string) reflect.Value {
	return fieldAt(reflect.ValueOf(&v.as).Elem(), path)
}

// complete fills in what nothing was said of.
func (v *Values) complete() {
	for _, s := range settings {
		if s.is == nil || !empty(v.field(s.path)) {
			continue
		}
		if is, timed := s.is.(time.Duration); timed && is > 0 && v.where[s.path].flag {
			continue // a flag can say 0, as a file cannot
		}
		put(v.field(s.path), s.is)
		delete(v.where, s.path)
	}
	v.completeAddresses()
	for _, p := range []*metav1.Duration{&v.as.IPTables.MinSyncPeriod, &v.as.NFTables.MinSyncPeriod} {
		if p.Duration == 0 {
			p.Duration = noPause
		}
	}
	v.as.APIVersion, v.as.Kind = apiVersion, kind
}

// noPause is a minSyncPeriod of 0 such as a file can say it: there a 0 is as good as nothing.
const noPause = time.Nanosecond

// differs reports whether a setting is another than when nothing is said.
func (v *Values) differs(s setting) bool {
	field := v.field(s.path)
	if s.is == nil {
		return !empty(field)
	}
	def := reflect.New(field.Type()).Elem()
	put(def, s.is)
	return !reflect.DeepEqual(bare(field), bare(def))
}

// fieldAt is the field of a struct at a path of JSON names.
func fieldAt(in reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		in, _ = fieldNamed(in, name)
	}
	return in
}

// fieldNamed is the field of a struct with a JSON name; those of embedded structs are as its own.
func fieldNamed(in reflect.Value, name string) (reflect.Value, bool) {
	for f, value := range in.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && name != "" {
			return value, true
		}
		if f.Anonymous && tag == "" {
			if found, ok := fieldNamed(value, name); ok {
				return found, true
			}
		}
	}
	return reflect.Value{}, false
}

// put writes a flag's value into a field, whose type may be another form of it.
func put(field reflect.Value, is any) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch to := field.Addr().Interface().(type) {
	case *metav1.Duration:
		to.Duration = is.(time.Duration)
	case *logsapi.TimeOrMetaDuration:
		*to = logsapi.TimeOrMetaDuration{Duration: metav1.Duration{Duration: is.(time.Duration)}, SerializeAsString: true}
	default:
		field.Set(reflect.ValueOf(is).Convert(field.Type()))
	}
}

// bare is a field's value without what only says how it was written.
func bare(field reflect.Value) any {
	if t, ok := reflect.TypeAssert[logsapi.TimeOrMetaDuration](field); ok {
		return t.Duration.Duration
	}
	return field.Interface()
}

// empty reports whether a field says nothing, as kubeadm writes every field there is.
func empty(field reflect.Value) bool {
	if t, ok := reflect.TypeAssert[logsapi.TimeOrMetaDuration](field); ok {
		return t.Duration.Duration == 0
	}
	switch field.Kind() {
	case reflect.String:
		return strings.TrimSpace(field.String()) == ""
	case reflect.Slice, reflect.Map:
		return field.Len() == 0
	}
	if q, ok := reflect.TypeAssert[interface{ IsZero() bool }](field.Addr()); ok && field.Kind() == reflect.Struct {
		return q.IsZero()
	}
	return field.IsZero()
}
