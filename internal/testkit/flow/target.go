package flow

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// Target is an endpoint that the packet may reach.
type Target struct {
	netip.AddrPort
	Masquerade bool // the endpoint sees an address of the node, not the client's
	// Share is how many of such connections it gets, from 0 to 1. Real packets leave it 0, unknown.
	Share float64
}

// tolerance is what shares may be off by: iptables keeps them in 31 bits.
const tolerance = 1e-6

func (t Target) equal(o Target) bool {
	known := t.Share > 0 && o.Share > 0
	return t.AddrPort == o.AddrPort && t.Masquerade == o.Masquerade && (!known || math.Abs(t.Share-o.Share) < tolerance)
}

// text is the address, and the share unless it is that of any of n equals.
func (t Target) text(n int) string {
	if t.Share == 0 || math.Abs(t.Share-1/float64(n)) < tolerance {
		return t.String()
	}
	return t.String() + "=" + strconv.FormatFloat(100*t.Share, 'g', 6, 64) + "%"
}

// parseTarget reads one of n endpoints as text writes it.
func parseTarget(text string, n int) (t Target, err error) {
	address, share, given := strings.Cut(text, "=")
	if t.AddrPort, err = netip.ParseAddrPort(address); err != nil {
		return t, err
	}
	if !given {
		t.Share = 1 / float64(n)
		return t, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
	if err != nil || !strings.HasSuffix(share, "%") || percent <= 0 || percent > 100 {
		return t, fmt.Errorf("endpoint %q: want ADDRESS:PORT=SHARE%%", text)
	}
	t.Share = percent / 100
	return t, nil
}
