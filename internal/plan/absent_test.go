package plan

import (
	"strings"
	"testing"

	"sluice/internal/model"
)

// While this node's object is absent, which the node's problems say, endpoints are still local by the name that they give.
func TestEndpointsAreLocalWithoutTheNode(t *testing.T) {
	local := service(func(s *model.Service) { s.InternalPolicy = model.PolicyLocal })
	s := snapshot(local, slice(endpoint("10.244.1.5", "node-a", "rs"), endpoint("10.244.2.5", "node-b", "rs")))
	delete(s.Nodes, "node-a")
	p := Build(config, Host{}, s)
	wantOutcome(t, p, "10.244.1.9", "10.96.0.10:80", forward("10.244.1.5"))
	problems := p.NodeProblems()
	if len(problems) == 0 || !strings.Contains(problems[0].String(), "Node node-a: there is no such Node") {
		t.Errorf("the problems are %v", problems)
	}
}
