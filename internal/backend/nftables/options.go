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
	// Deliver says who sends packets to endpoints.
	Deliver Delivery
}

// Delivery is who sends packets to endpoints.
type Delivery uint8

const (
	// DeliverDNAT has the table do it.
	DeliverDNAT Delivery = iota
	// DeliverIPVS leaves it to ipvs, whose virtual servers are somebody else's to write: with the destination of each
	// frontend that forwards, node ports at each address that serves them, and for outside clients that another list is
	// for, with the mark that [Ruleset.Mark] tells. Their addresses must be this node's, on a device that [plan.Node]
	// knows nothing of, and net.ipv4.vs.conntrack on. The table refuses, marks, and gives new sources.
	DeliverIPVS
)

// DefaultOptions are kube-proxy's.
func DefaultOptions() Options { return Options{MasqueradeBit: 14} }
