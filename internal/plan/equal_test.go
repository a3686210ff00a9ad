package plan

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// A field that equality does not look at would keep its changes from the kernel.
func TestEqualSeesEveryField(t *testing.T) {
	everyField(t, func(a, b Port) bool { return a.equal(&b) })
	everyField(t, func(a, b Node) bool { return a.equal(&b) })
	everyField(t, func(a, b NodePorts) bool { return a.equal(&b) })
	everyField(t, func(a, b HealthCheck) bool { return a.equal(&b) })
}

func everyField[T any](t *testing.T, equal func(a, b T) bool) {
	t.Helper()
	var zero T
	kind := reflect.TypeFor[T]()
	for i := range kind.NumField() {
		var changed, same T
		reflect.ValueOf(&changed).Elem().Field(i).Set(other(t, kind.Field(i).Type))
		reflect.ValueOf(&same).Elem().Field(i).Set(other(t, kind.Field(i).Type))
		if equal(zero, changed) || equal(changed, zero) {
			t.Errorf("%s: a change of %s alone is not seen", kind, kind.Field(i).Name)
		}
		if !equal(changed, same) {
			t.Errorf("%s: two equal values of %s count as different", kind, kind.Field(i).Name)
		}
	}
}

// other is a value that is not the zero value, made anew at each call.
func other(t *testing.T, kind reflect.Type) reflect.Value {
	t.Helper()
	switch kind {
	case reflect.TypeFor[netip.Addr]():
		return reflect.ValueOf(netip.MustParseAddr("192.0.2.1"))
	case reflect.TypeFor[netip.Prefix]():
		return reflect.ValueOf(netip.MustParsePrefix("192.0.2.0/24"))
	case reflect.TypeFor[netip.AddrPort]():
		return reflect.ValueOf(netip.MustParseAddrPort("192.0.2.1:80"))
	}
	v := reflect.New(kind).Elem()
	switch kind.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(time.Second))
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(1)
	case reflect.Slice:
		v.Set(reflect.Append(v, other(t, kind.Elem())))
	case reflect.Array:
		v.Index(kind.Len() - 1).Set(other(t, kind.Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(kind.Elem()))
		v.Elem().Set(other(t, kind.Elem()))
	case reflect.Struct:
		v.Field(kind.NumField() - 1).Set(other(t, kind.Field(kind.NumField()-1).Type))
	default:
		t.Fatalf("no value of %s is known", kind)
	}
	return v
}
