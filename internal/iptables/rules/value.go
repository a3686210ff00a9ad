package rules

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// Prefix is the addresses of an -s or -d: those whose bits under the mask are those of the address. The masks of
// almost all rules are prefixes.
type Prefix struct {
	Addr netip.Addr
	mask []byte
}

// ParsePrefix reads ADDRESS, ADDRESS/BITS or ADDRESS/MASK.
func ParsePrefix(s string) (Prefix, error) {
	address, rest, masked := strings.Cut(s, "/")
	a, err := netip.ParseAddr(address)
	if err != nil || a.Zone() != "" {
		return Prefix{}, fmt.Errorf("address %q: not an IP address", s)
	}
	mask := bits(a.BitLen(), a.BitLen())
	if masked {
		if mask = parseMask(rest, a); mask == nil {
			return Prefix{}, fmt.Errorf("address %q: not a mask", s)
		}
	}
	return Prefix{and(a, mask), mask}, nil
}

// Contains reports whether an address is one of the prefix's.
func (p Prefix) Contains(a netip.Addr) bool {
	return a.BitLen() == p.Addr.BitLen() && and(a, p.mask) == p.Addr
}

// String is as iptables-save writes it, always with the mask.
func (p Prefix) String() string {
	n := 0
	for _, b := range p.mask {
		n += strings.Count(strconv.FormatUint(uint64(b), 2), "1")
	}
	if string(bits(n, 8*len(p.mask))) == string(p.mask) {
		return p.Addr.String() + "/" + strconv.Itoa(n)
	}
	mask, _ := netip.AddrFromSlice(p.mask)
	return p.Addr.String() + "/" + mask.String()
}

func (p Prefix) all() bool { return p.String() == "0.0.0.0/0" || p.String() == "::/0" }

func parseMask(s string, a netip.Addr) []byte {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n <= a.BitLen() {
		return bits(n, a.BitLen())
	}
	if m, err := netip.ParseAddr(s); err == nil && m.BitLen() == a.BitLen() && m.Zone() == "" {
		return m.AsSlice()
	}
	return nil
}

// bits is a mask of n ones.
func bits(n, length int) []byte {
	mask := make([]byte, length/8)
	for i := range n {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return mask
}

func and(a netip.Addr, mask []byte) netip.Addr {
	b := a.AsSlice()
	for i := range b {
		b[i] &= mask[i]
	}
	masked, _ := netip.AddrFromSlice(b)
	return masked
}

func normalAddress(s string) (values []string, all bool) {
	p, err := ParsePrefix(s)
	if err != nil {
		return []string{s}, false
	}
	return []string{p.String()}, p.all()
}

func normalProtocol(s string) (values []string, all bool) {
	number, ok := ProtocolNumber(s)
	if !ok {
		return []string{s}, false
	}
	return []string{protocolName(number)}, number == 0
}

// ParsePorts reads PORT, or FIRST:LAST where either may be missing.
func ParsePorts(s string) (first, last uint16, err error) {
	a, b, isRange := strings.Cut(s, ":")
	if !isRange {
		b = a
	}
	if isRange && a == "" {
		a = "0"
	}
	if isRange && b == "" {
		b = "65535"
	}
	x, errA := strconv.ParseUint(a, 10, 16)
	y, errB := strconv.ParseUint(b, 10, 16)
	if errA != nil || errB != nil || x > y {
		return 0, 0, fmt.Errorf("ports %q: want PORT or FIRST:LAST", s)
	}
	return uint16(x), uint16(y), nil
}

func normalPorts(s string) (ports string, all bool) {
	first, last, err := ParsePorts(s)
	if err != nil {
		return s, false
	}
	if first == last {
		return strconv.Itoa(int(first)), false
	}
	return fmt.Sprintf("%d:%d", first, last), first == 0 && last == 65535
}

const allBits = math.MaxUint32

// ParseMark reads VALUE or VALUE/MASK, in the base that its prefix tells. Without a mask it is all bits.
func ParseMark(s string) (MarkChange, bool) {
	mask := uint32(allBits)
	value, rest, masked := strings.Cut(s, "/")
	v, err := strconv.ParseUint(value, 0, 32)
	if err != nil {
		return MarkChange{}, false
	}
	if masked {
		m, err := strconv.ParseUint(rest, 0, 32)
		if err != nil {
			return MarkChange{}, false
		}
		mask = uint32(m)
	}
	return MarkChange{uint32(v), mask}, true
}

// One is certainty in the unit in which the kernel keeps the probability of the statistic match.
const One = 1 << 31

// Probability is the text that iptables-save prints for a probability of n/One.
func Probability(n uint32) string { return strconv.FormatFloat(float64(n)/One, 'f', 11, 64) }

// ParseProbability reads the argument of --probability, rounded as the kernel keeps it.
func ParseProbability(s string) (n uint32, ok bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, false
	}
	return uint32(math.Round(f * One)), true
}

// normalNATAddress writes the addresses of DNAT and SNAT: ADDRESS[-ADDRESS][:PORT[-PORT]], IPv6 in brackets before a
// port.
func normalNATAddress(s string) string {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.String()
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.String()
	}
	return s
}
