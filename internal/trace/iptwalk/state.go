package iptwalk

import (
	"net/netip"

	"sluice/internal/trace/weigh"
)

// state is what the rules can change or ask of a packet.
type state struct {
	src       netip.Addr
	dst       netip.AddrPort
	mark      uint32
	ctmark    uint32 // of the connection
	dnat      bool   // the destination was translated
	snat      bool   // the source was translated
	untracked bool
}

type flow = weigh.Flow[state]
