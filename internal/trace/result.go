package trace

import (
	"cmp"
	"net/netip"
	"slices"
)

// Verdict is what becomes of a packet.
type Verdict string

// The verdicts.
const (
	Forward   Verdict = "forward"   // it reaches an endpoint
	Reject    Verdict = "reject"    // its sender is told that there is nothing
	Drop      Verdict = "drop"      // silence
	Unhandled Verdict = "unhandled" // the rules leave it alone: it goes wherever its own destination is
)

// Result is the answer for one packet.
type Result struct {
	Verdict Verdict `json:"verdict"`
	// Endpoints are those it may reach, by address. Empty unless the verdict is Forward.
	Endpoints []Endpoint `json:"endpoints"`
	Steps     []Step     `json:"steps"`
	// Uncertain is set when rules that are not understood decide: what they may lead to otherwise is in Alternatives. It
	// is set, too, when there is anything in NotFollowed, which may lead anywhere.
	Uncertain bool `json:"uncertain,omitempty"`
	// NotFollowed are the chains of [Result.Meet].
	NotFollowed []Chain `json:"notFollowed,omitempty"`
	// Hooks are those that the packet comes by, where rules were walked.
	Hooks Hooks `json:"-"`
	// Alternatives are the other verdicts, by chance or, if Uncertain, by what is not known.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	Warnings     []string      `json:"warnings,omitempty"`
	// Error says what is wrong with the rules themselves, such as a jump to a chain that is not there.
	Error string `json:"error,omitempty"`
}

// Endpoint is an endpoint that a packet may reach.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	// Probability is its share of all such packets, from 0 to 1.
	Probability float64 `json:"probability"`
	// Masquerade: the endpoint sees an address of the node, rather than the client's.
	Masquerade bool `json:"masquerade"`
}

// Step is a rule that the packet met and that did something to it.
type Step struct {
	At   string `json:"at"`   // table, hook and the chains passed through, as in "nat PREROUTING → KUBE-SERVICES"
	Rule string `json:"rule"` // as the backend's own tool prints it
	Says string `json:"says"` // the same in words
}

// Alternative is another verdict that the same packet may get.
type Alternative struct {
	Verdict Verdict `json:"verdict"`
	// Probability is its share of all such packets; 0 where nobody knows.
	Probability float64    `json:"probability,omitempty"`
	Endpoints   []Endpoint `json:"endpoints,omitempty"`
}

// SortEndpoints sorts by address and port, and puts those that see the client first.
func SortEndpoints(endpoints []Endpoint) {
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		if c := a.Address.Compare(b.Address); c != 0 {
			return c
		}
		return cmp.Compare(bit(a.Masquerade), bit(b.Masquerade))
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
