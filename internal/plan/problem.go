package plan

import (
	"fmt"

	"sluice/internal/model"
)

// Problem is something in the input that the user should know of: the plan works, but not as written.
type Problem struct {
	Object string // "Service default/web", "Node node-a"
	Text   string
}

// String is one line.
func (p Problem) String() string { return p.Object + ": " + p.Text }

// Problems lists what is wrong with this node and with the Service ports, in a stable order.
func (p *Plan) Problems() (all []Problem) {
	all = p.NodeProblems()
	for _, port := range p.Sorted() {
		all = append(all, port.Problems()...)
	}
	return all
}

// NodeProblems lists what is wrong with this node alone.
func (p *Plan) NodeProblems() (all []Problem) {
	if p.Node.Missing {
		all = append(all, p.Node.NoObject())
	}
	for _, f := range model.Families {
		if p.Node.NodePorts[f].Unlisted {
			all = append(all, Problem{"nodePortAddresses", fmt.Sprintf("no %s range is listed, so node ports answer at every %s address", f, f)})
		}
		if d := p.Node.Detect; !d[f].Implemented() && d[1-f].Implemented() && p.count[f] > 0 {
			all = append(all, Problem{"detectLocalMode", fmt.Sprintf("no %s range of pods is given, so no %s client counts as a pod", f, f)})
		}
	}
	return all
}

// NoObject is what is wrong with a node that is Missing.
func (n *Node) NoObject() Problem {
	return Problem{"Node " + n.Name, "there is no such Node; only endpoints that name it count as local"}
}

// Problems lists what is wrong with this Service port.
func (p *Port) Problems() (all []Problem) {
	for _, l := range p.Lost {
		text := fmt.Sprintf("%s %s of port %q belongs to Service %s", l.Kind, l.Key, p.ID.Port, l.Winner)
		all = append(all, Problem{"Service " + p.ID.Service.String(), text})
	}
	return all
}
