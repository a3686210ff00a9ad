package differential_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sluice/internal/model"
)

// finding is a question that the two sides answered otherwise.
type finding struct {
	question
	mode             string
	claims           int // Services that want the address
	sluice, upstream answers
}

// intended is a difference that is meant: a row of docs/differences.md that packets can show in this cluster.
type intended struct {
	// row is the first cell of that row.
	row string
	// mode is the one mode in which it shows; empty: both.
	mode string
	// explains reports whether a finding is this difference.
	explains func(f finding) bool
}

// shows reports whether the difference is one in a mode.
func (i intended) shows(mode string) bool { return i.mode == "" || i.mode == mode }

// differences are all that packets can show. The first that explains a finding counts.
func differences() []intended {
	return []intended{
		{"Two Services claim one address and port", "", func(f finding) bool { return f.claims > 1 }},
		{"One endpoint address in two EndpointSlices", "", finding.told},
		{"An endpoint that connects to itself", "nftables", finding.returned},
		{"`loadBalancerSourceRanges` and no endpoint", "iptables", func(f finding) bool {
			guarded := f.target == loadBalancer && len(f.subject.service.Spec.LoadBalancerSourceRanges) > 0
			return guarded && f.sluice.lost() && (f.upstream.only("reject") || f.client == process && f.upstream.lost())
		}},
		{"The node itself connects to an external or load balancer IP without endpoints", "iptables", func(f finding) bool {
			external := f.target == externalIP || f.target == loadBalancer
			return f.client == process && external && f.sluice.only("reject") && f.upstream.lost()
		}},
		{"Node port without endpoints, or with policy Local and none on this node", "iptables", func(f finding) bool {
			return f.target == loopback && f.family == model.IPv6 && (f.upstream.only("reject") || f.upstream.only("drop"))
		}},
	}
}

// explain finds the row that explains a finding.
func explain(f finding) (row string, ok bool) {
	for _, i := range differences() {
		if i.shows(f.mode) && i.explains(f) {
			return i.row, true
		}
	}
	return "", false
}

// told is whether two slices tell of one endpoint, and not the same.
func (f finding) told() bool {
	first := f.subject.members
	return slices.ContainsFunc(first, func(m member) bool { return m.again && !reflect.DeepEqual(m.conditions, first[0].conditions) })
}

// returned is whether the answers differ in one thing alone: an endpoint elsewhere that is sent back to itself sees the
// node in one, and gets no answer, or sees itself, in the other.
func (f finding) returned() bool {
	itself := fmt.Sprintf("pod %d elsewhere:", f.number)
	others := func(a answers) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool {
			return strings.HasPrefix(s, itself) || answers{s}.lost()
		})
	}
	masqueraded := func(s string) bool {
		return strings.HasPrefix(s, itself) && strings.HasSuffix(s, "sees the machine here")
	}
	return f.client == endpointOutside && slices.ContainsFunc(f.sluice, masqueraded) &&
		!slices.ContainsFunc(f.upstream, masqueraded) && slices.Equal(others(f.sluice), others(f.upstream))
}

// lost reports whether nothing came back. Whether that is for a drop can be told in IPv6 alone.
func (a answers) lost() bool { return a.only("drop") || a.only("unhandled") || a.only(silence) }
