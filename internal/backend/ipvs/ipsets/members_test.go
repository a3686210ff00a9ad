package ipsets

import (
	"fmt"
	"net/netip"

	"sluice/internal/iptables/sets"
)

func entryOf(a netip.Addr) sets.Entry { return sets.Entry{Addr: a} }

func hex(mark uint32) string { return fmt.Sprintf("%#x", mark) }
