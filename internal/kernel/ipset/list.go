package ipset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// List reads all sets with their entries. One that others change meanwhile may be read in part as it was and in part as
// it is. It fails with [ErrAbsent] in a kernel without ipset.
func (c *Conn) List() (sets []Set, err error) {
	messages, err := c.request(nl.IPSET_CMD_LIST, "", nil)
	if errors.Is(err, syscall.EINVAL) { // what nfnetlink says for a part that it does not have
		return nil, &Error{Op: "list", Set: "all sets", Err: ErrAbsent}
	}
	if err != nil {
		return nil, wrap("list", "all sets", err)
	}
	for _, m := range messages {
		if sets, err = appendPart(sets, m.Data); err != nil {
			return nil, fmt.Errorf("ipset: list all sets: %w", err)
		}
	}
	return sets, nil
}

const nfgenmsgLen = 4

// appendPart takes in a message: a set, or more entries of the last one.
func appendPart(sets []Set, data []byte) ([]Set, error) {
	if len(data) < nfgenmsgLen {
		return sets, fmt.Errorf("message of %d bytes", len(data))
	}
	var s Set
	if err := s.decode(data[nfgenmsgLen:]); err != nil {
		return sets, err
	}
	if last := len(sets) - 1; last >= 0 && sets[last].Name == s.Name {
		sets[last].Entries = append(sets[last].Entries, s.Entries...)
		return sets, nil
	}
	return append(sets, s), nil
}

// each reads the attributes in data. What they hold is in network byte order.
func each(data []byte, do func(*netlink.AttributeDecoder)) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		do(d)
	}
	return d.Err()
}

// nested reads the attributes within another.
func nested(d *netlink.AttributeDecoder, do func(*netlink.AttributeDecoder)) {
	d.Do(func(b []byte) error { return each(b, do) })
}

func (s *Set) decode(data []byte) error {
	return each(data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case nl.IPSET_ATTR_SETNAME:
			s.Name = d.String()
		case nl.IPSET_ATTR_TYPENAME:
			s.Type = d.String()
		case nl.IPSET_ATTR_FAMILY:
			s.IPv6 = d.Uint8() == unix.AF_INET6
		case nl.IPSET_ATTR_DATA:
			nested(d, s.decodeHeader)
		case nl.IPSET_ATTR_ADT:
			nested(d, func(d *netlink.AttributeDecoder) {
				var i Item
				nested(d, i.decode)
				s.Entries = append(s.Entries, i)
			})
		}
	})
}

func (s *Set) decodeHeader(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case nl.IPSET_ATTR_HASHSIZE:
		s.HashSize = d.Uint32()
	case nl.IPSET_ATTR_MAXELEM:
		s.MaxElem = d.Uint32()
	case nl.IPSET_ATTR_REFERENCES:
		s.References = d.Uint32()
	case nl.IPSET_ATTR_CADT_FLAGS:
		flags := d.Uint32()
		s.Marks = flags&nl.IPSET_FLAG_WITH_SKBINFO != 0
		s.Other = s.Other || flags&^nl.IPSET_FLAG_WITH_SKBINFO != 0
	case nl.IPSET_ATTR_TIMEOUT, nl.IPSET_ATTR_NETMASK:
		s.Other = true
	case nl.IPSET_ATTR_PORT_FROM:
		s.Other = s.Other || d.Uint16() != 0
	case nl.IPSET_ATTR_PORT_TO:
		s.Other = s.Other || d.Uint16() != 65535
	}
}

func (i *Item) decode(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case nl.IPSET_ATTR_IP:
		i.Addr = decodeAddr(d)
	case nl.IPSET_ATTR_PORT:
		i.Port = d.Uint16()
	case nl.IPSET_ATTR_PROTO:
		i.Protocol = d.Uint8()
	case nl.IPSET_ATTR_IP2:
		a := decodeAddr(d)
		i.Net = netip.PrefixFrom(a, a.BitLen()) // its length, if it has another, comes behind it
	case nl.IPSET_ATTR_CIDR2:
		i.Net = netip.PrefixFrom(i.Net.Addr(), int(d.Uint8()))
	case nl.IPSET_ATTR_SKBMARK:
		i.Mark = uint32(d.Uint64() >> 32)
	case nl.IPSET_ATTR_CADT_FLAGS:
		i.NoMatch = d.Uint32()&nl.IPSET_FLAG_NOMATCH != 0
	}
}

func decodeAddr(d *netlink.AttributeDecoder) (a netip.Addr) {
	nested(d, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case nl.IPSET_ATTR_IPADDR_IPV4, nl.IPSET_ATTR_IPADDR_IPV6:
			a, _ = netip.AddrFromSlice(d.Bytes())
		}
	})
	return a
}
