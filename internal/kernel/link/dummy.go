package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddDummy makes an interface that leads nowhere and is down: it is there to have addresses. Having it already is success.
func (h *Handle) AddDummy(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	err := h.nl.LinkAdd(&netlink.Dummy{LinkAttrs: attrs})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add dummy interface %s: %w", name, err)
	}
	return nil
}

// ErrNotDummy occurs when an interface of the name is there that is no dummy: somebody else's.
var ErrNotDummy = errors.New("the interface is no dummy")

// AddressesOf returns the addresses of a dummy interface. The error is ErrNotFound if there is no interface of the name.
func (h *Handle) AddressesOf(name string) (prefixes []netip.Prefix, err error) {
	err = h.with(name, func(l netlink.Link) error {
		if l.Type() != "dummy" {
			return fmt.Errorf("%w but of type %s", ErrNotDummy, l.Type())
		}
		addrs, err := dump(func() ([]netlink.Addr, error) { return h.nl.AddrList(l, netlink.FAMILY_ALL) })
		for _, a := range addrs {
			prefixes = append(prefixes, toPrefix(a.IPNet))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", name, err)
	}
	return prefixes, nil
}
