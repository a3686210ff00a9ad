package ipsets

import "fmt"

// Options are what is this mode's own to choose. The zero value is not useful; see [DefaultOptions].
type Options struct {
	// MasqueradeBit is the bit of the packet mark, 0 to 31, that asks for a new source address.
	MasqueradeBit int
	// TCPBeLiberal is set where connection tracking takes TCP packets out of window as they are
	// (net.netfilter.nf_conntrack_tcp_be_liberal). Then there is no rule that drops invalid ones.
	TCPBeLiberal bool
}

// DefaultOptions are kube-proxy's.
func DefaultOptions() Options { return Options{MasqueradeBit: 14} }

// mark is the bit's mask, as iptables-save prints it.
func (o Options) mark() string { return fmt.Sprintf("%#x", uint32(1)<<o.MasqueradeBit) }
