package link_test

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"sluice/internal/kernel/link"
	"sluice/internal/testkit/nstest"
)

// The addresses of a dummy interface are the namespace's own, though the interface is down.
func TestDummy(t *testing.T) {
	nstest.Require(t)
	h, ns := newHandle(t)
	if _, err := h.AddressesOf("svc0"); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("error %v, want %v", err, link.ErrNotFound)
	}
	err := h.AddDummy("svc0")
	if errors.Is(err, syscall.EOPNOTSUPP) {
		nstest.Lacks(t, "dummy", err)
	}
	must(t, err)
	must(t, h.AddDummy("svc0"))
	want := []netip.Prefix{netip.MustParsePrefix("10.96.0.10/32"), netip.MustParsePrefix("fd00:96::a/128")}
	for _, p := range want {
		must(t, h.AddAddress("svc0", p))
		must(t, h.AddAddress("svc0", p))
	}
	if got, err := h.AddressesOf("svc0"); err != nil || !slices.Equal(got, want) {
		t.Errorf("addresses %v, %v, want %v", got, err, want)
	}
	must(t, h.Settle(t.Context()))
	serve(t, ns, "here")
	for _, p := range want {
		if got := fetch(t, ns, net.JoinHostPort(p.Addr().String(), "80")); got != "here" {
			t.Errorf("%s answers %q", p.Addr(), got)
		}
	}
	mute := netip.MustParsePrefix("10.96.0.11/32")
	must(t, h.AddMuteAddress("svc0", mute))
	must(t, h.AddMuteAddress("svc0", netip.MustParsePrefix("fd00:96::b/128")))
	must(t, h.Settle(t.Context()))
	for _, host := range []string{"10.96.0.11", "fd00:96::b"} {
		if got := fetch(t, ns, net.JoinHostPort(host, "80")); got != "here" {
			t.Errorf("mute %s answers %q", host, got)
		}
	}
	must(t, h.DeleteAddress("svc0", mute))
	must(t, h.DeleteAddress("svc0", netip.MustParsePrefix("fd00:96::b/128")))
	must(t, h.DeleteAddress("svc0", want[1]))
	if got, err := h.AddressesOf("svc0"); err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("addresses %v, %v, want %v", got, err, want[:1])
	}
	must(t, h.Delete("svc0"))
}

// An interface of another kind that has the name is told apart.
func TestNotDummy(t *testing.T) {
	nstest.Require(t)
	h, _ := newHandle(t)
	if _, err := h.AddressesOf("lo"); !errors.Is(err, link.ErrNotDummy) {
		t.Errorf("error %v, want %v", err, link.ErrNotDummy)
	}
}
