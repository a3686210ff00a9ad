package ipvs

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// state is what the kernel has, as far as that is known.
type state struct {
	servers map[Server]*held
	// at counts servers by address.
	at map[netip.Addr]int
	// device is set if there is one, and addrs are its addresses.
	device bool
	addrs  map[netip.Addr]struct{}
	// standIns are addresses that local routes stand in for.
	standIns map[netip.Addr]struct{}
}

func newState() *state {
	return &state{servers: map[Server]*held{}, at: map[netip.Addr]int{}, addrs: map[netip.Addr]struct{}{}, standIns: map[netip.Addr]struct{}{}}
}

// held is a virtual server of the kernel.
type held struct {
	Scheduling
	// signed is set if it has our flag: see [signature].
	signed bool
	// grouped is set where persistence is not for each client address alone.
	grouped bool
	// ours is set if it is for us to remove.
	ours         bool
	destinations map[netip.AddrPort]destination
}

// destination is one of a virtual server of the kernel.
type destination struct {
	weight uint32
	// busy is set unless it is known that it has no connections.
	busy bool
	// elsewise is set where packets are not forwarded by translating addresses.
	elsewise bool
	traffic
}

// traffic counts packets from and to clients.
type traffic struct{ received, sent uint64 }

// signature is a flag that virtual servers of ours have. The kernel keeps all flags of a virtual server and reads the
// lowest; it has no other place for a note of whose one is.
const signature Flags = 0x51000000

// put enters a virtual server.
func (s *state) put(at Server, h *held) {
	if s.servers[at] == nil {
		s.at[at.Addr]++
	}
	s.servers[at] = h
}

// remove takes one out.
func (s *state) remove(at Server) {
	if s.servers[at] == nil {
		return
	}
	delete(s.servers, at)
	if s.at[at.Addr]--; s.at[at.Addr] == 0 {
		delete(s.at, at.Addr)
	}
}

// Node ports are by default from this range, see kube-apiserver's --service-node-port-range.
const firstNodePort, lastNodePort = 30000, 32767

// claim decides which virtual servers are for us to remove. Those of ours are signed. Those at an address of the device
// are as well, whoever made them. Where kube-proxy was before us, so that there is its device and nothing signed, those
// are that it has made for node ports: at ports from their range. What is excluded is let alone, unless it is signed: a
// Service had it, and others would go on to be led to endpoints that are somebody else's by now.
func (s *state) claim(excluded []netip.Prefix, first bool) {
	inherits := first && s.device && !s.isSigned()
	for at, h := range s.servers {
		_, bound := s.addrs[at.Addr]
		_, was := s.standIns[at.Addr]
		nodePort := inherits && at.Mark == 0 && at.Port >= firstNodePort && at.Port <= lastNodePort && !h.elsewise()
		h.ours = h.signed || (bound || was || nodePort) && !isExcluded(at, excluded)
	}
}

// isSigned reports whether a virtual server of ours is there.
func (s *state) isSigned() bool {
	for _, h := range s.servers {
		if h.signed {
			return true
		}
	}
	return false
}

// frontend is what a virtual server of ours stands for: a node port, if its address is not the device's.
func (s *state) frontend(at Server) plan.Key {
	if _, bound := s.addrs[at.Addr]; bound {
		return at.Key
	}
	return plan.NodePortKey(model.FamilyOf(at.Addr), at.Protocol, at.Port)
}

// serves reports whether an address of the device has virtual servers.
func (s *state) serves() bool {
	for a := range s.addrs {
		if s.at[a] > 0 {
			return true
		}
	}
	return false
}

func (h *held) elsewise() bool {
	for _, d := range h.destinations {
		if d.elsewise {
			return true
		}
	}
	return false
}

func isExcluded(at Server, excluded []netip.Prefix) bool {
	if at.Mark != 0 {
		return false
	}
	for _, p := range excluded {
		if p.Contains(at.Addr) {
			return true
		}
	}
	return false
}

// drains reports whether something goes once its connections have.
func (h *held) drains(want *VirtualServer) bool {
	if want == nil && !h.ours {
		return false
	}
	for a, d := range h.destinations {
		if d.weight == 0 && !(want != nil && want.weight(a) > 0) {
			return true
		}
	}
	return false
}

// ends reports whether one of the destinations that the kernel has now has neither new connections nor old ones.
func (h *held) ends(now map[netip.AddrPort]destination) bool {
	for a, d := range now {
		if _, known := h.destinations[a]; known && d.weight == 0 && !d.busy {
			return true
		}
	}
	return false
}
