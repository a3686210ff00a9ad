package splice

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// originalDst is SO_ORIGINAL_DST of IPv4 and IP6T_SO_ORIGINAL_DST of IPv6 alike.
const originalDst = 80

// OriginalDst4 is where the accepted IPv4 connection fd was going before the kernel redirected it. For one that was not
// redirected this is the local address, or an error if connection tracking does not know it.
func OriginalDst4(fd uintptr) (netip.AddrPort, error) {
	// The answer is a sockaddr_in. Of the structs that x/sys asks with, this one is large enough: 20 bytes.
	raw, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, originalDst)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockopt SO_ORIGINAL_DST", err)
	}
	b := raw.Multiaddr
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4])), nil
}

// OriginalDst6 is OriginalDst4 for an IPv6 connection.
func OriginalDst6(fd uintptr) (netip.AddrPort, error) {
	// The answer is a sockaddr_in6, with which this struct begins.
	raw, err := unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, originalDst)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockopt IP6T_SO_ORIGINAL_DST", err)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(raw.Addr.Addr), networkOrder(raw.Addr.Port)), nil
}

// networkOrder reads a port that lies in memory as the network has it.
func networkOrder(port uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, port))
}
