package nftables

// tableName is the name of our table. Nothing else in it is anybody else's.
const tableName = "sluice"

// Options are what is this mode's own to choose. The zero value is not useful; see [DefaultOptions].
type Options struct {
	// MasqueradeBit is the bit of the packet mark, 0 to 31, that asks for a new source address.
	MasqueradeBit int
	// TCPBeLiberal is set where connection tracking takes TCP packets out of window as they are
	// (net.netfilter.nf_conntrack_tcp_be_liberal). Then there are no rules that drop invalid ones.
	TCPBeLiberal bool
}

// DefaultOptions are kube-proxy's.
func DefaultOptions() Options { return Options{MasqueradeBit: 14} }
