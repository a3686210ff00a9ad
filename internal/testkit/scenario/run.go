package scenario

import (
	"cmp"
	"testing"

	"sluice/internal/plan"
	"sluice/internal/testkit/flow"
)

// Column is one way to answer every scenario.
type Column struct {
	Name string
	// Mode is the --mode that the column is about, and whose policy it has. Empty for the plan, which is about all.
	Mode string
	// policy is the mode whose policy it has, if not that.
	policy string
	open   func(t testing.TB, s Scenario, node string) flow.Way
	// require ends a test that needs more of the kernel than it has; nil: every kernel will do.
	require func(testing.TB)
	// expect is what a flow is to become of that the scenario writes as it is planned.
	expect expectation
}

// expectation is how flows end in a mode that are planned to end as they say; see [Mode.Expect].
type expectation func(*plan.Plan, flow.Flow) flow.Flow

// Here are the columns that this kernel can answer. For each of the others there is a subtest that says what it lacks: in
// the virtual machine, which lacks nothing, it fails.
func Here(t *testing.T, columns []Column) (here []Column) {
	t.Helper()
	for _, c := range columns {
		able := true
		if c.require != nil {
			t.Run("here: "+c.Name, func(t *testing.T) { // unless -run leaves it out: then each scenario finds out
				able = false
				c.require(t)
				able = true
			})
		}
		if able {
			here = append(here, c)
		}
	}
	return here
}

// Run replays s in every column, each as a subtest.
func Run(t *testing.T, s Scenario, columns []Column) {
	t.Helper()
	for way := range s.Excuse {
		if !known(Columns(), way) {
			t.Errorf("not by %s: there is no such way", way)
		}
	}
	for _, c := range columns {
		if reason, ok := s.Excuse[c.Name]; ok {
			t.Logf("not by %s: %s", c.Name, reason)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if c.require != nil {
				c.require(t)
			}
			s.replay(t, c)
		})
	}
}

func known(columns []Column, name string) bool {
	for _, c := range columns {
		if c.Name == name {
			return true
		}
	}
	return false
}

// replay works all sections through, once for each node that flows pass.
func (s Scenario) replay(t *testing.T, c Column) {
	t.Helper()
	nodes, err := s.nodes()
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		w := newWorld(t, node, cmp.Or(c.policy, c.Mode, planPolicy), c.open(t, s, node))
		for _, step := range s.Steps {
			if flows := w.step(t, step); flows != nil {
				w.ask(t, flows, c.expect)
			}
		}
	}
}
