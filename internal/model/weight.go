package model

import (
	"net/netip"
	"strings"
)

// MaxWeight is the largest weight. It bounds how often one endpoint is written down where a backend takes turns.
const MaxWeight = 100

// Weight says how many connections the endpoints that it names get for each one that an unnamed endpoint gets.
// One of Address, Pod and Node is set.
type Weight struct {
	Address netip.Addr
	Pod     string // a name, or the beginning of one and a "*"
	Node    string
	Value   uint16 // 1 to MaxWeight
}

// Names reports whether w is about e.
func (w *Weight) Names(e *Endpoint) bool {
	switch {
	case w.Address.IsValid():
		return w.Address == e.Address
	case w.Node != "":
		return w.Node == e.Node
	}
	if beginning, ok := strings.CutSuffix(w.Pod, "*"); ok {
		return strings.HasPrefix(e.Pod, beginning)
	}
	return w.Pod == e.Pod
}

// WeightOf is the weight of an endpoint: that of the first entry that names it, else 1.
func (s *Service) WeightOf(e *Endpoint) uint16 {
	for i := range s.Weights {
		if s.Weights[i].Names(e) {
			return s.Weights[i].Value
		}
	}
	return 1
}
