package ipsets

import (
	"net/netip"

	"sluice/internal/iptables/sets"
)

func entryOf(a netip.Addr) sets.Entry { return sets.Entry{Addr: a} }

func portEntry(port uint16) sets.Entry { return sets.Entry{Port: port} }
