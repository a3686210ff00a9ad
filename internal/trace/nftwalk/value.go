package nftwalk

import (
	"net/netip"

	"sluice/internal/nft"
)

func uint32Of(v nft.Value) uint32 { return nft.NewReader(v).Uint32() }

// addrPortOf reads an address and a port.
func addrPortOf(v nft.Value, ipv6 bool) netip.AddrPort {
	r := nft.NewReader(v)
	read := r.Addr4
	if ipv6 {
		read = r.Addr16
	}
	a := read()
	return netip.AddrPortFrom(a, r.Port())
}

func joined(a, b nft.Value) nft.Value { return nft.ValueOf(b.AppendTo(a.AppendTo(nil))) }

// equalBits compares whole values, or as many leading bits as prefix says.
func equalBits(a, b nft.Value, prefix int) bool {
	if prefix == 0 {
		return a == b
	}
	x, okX := netip.AddrFromSlice(a.AppendTo(nil))
	y, okY := netip.AddrFromSlice(b.AppendTo(nil))
	p, err := y.Prefix(prefix)
	return okX && okY && err == nil && p.Contains(x)
}

// fibAddr is the address that a routing lookup is about.
func (s state) fibAddr(f nft.Fib) netip.Addr {
	if f == nft.FibSaddr {
		return s.src
	}
	return s.dst.Addr()
}

// connection are the bits of what connection tracking knows of the packet: it begins a connection. One that is sent to
// the very address it asked for is not called translated.
func (w *walker) connection(c nft.CT, s state) uint32 {
	switch {
	case c == nft.CTState:
		return nft.StateNew
	case s.dnat && s.dst != w.pkt.To:
		return nft.StatusDNAT
	}
	return 0
}
