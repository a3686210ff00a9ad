package scenario

import (
	"bytes"
	"slices"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/config"
	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/testkit/flow"
	"sluice/internal/testkit/nstest"
)

// Mode is a backend under test.
type Mode struct {
	Name    string
	Compile flow.Compile
	// InKernel makes a backend for the node of a lab. It is called inside, as all that the backend does must be.
	InKernel func(testing.TB, *lab.Host) (backend.Backend, error)
	// Proxied is set where connections end at a proxy; see [flow.Flow.Proxied].
	Proxied bool
}

// Modes are all that there are. A new one is one line here. Each has a policy of its own.
func Modes() []Mode {
	return []Mode{
		{config.ModeIPTables, compileIPTables, iptablesInKernel, false},
		{config.ModeNFTables, compileNFTables, nftablesInKernel, false},
		{config.ModeUserspace, compileUserspace, userspaceInKernel, true},
	}
}

// Expect is what becomes of a flow in this mode that is planned to end as its Want says.
func (m Mode) Expect(p *plan.Plan, f flow.Flow) flow.Flow {
	if m.Proxied {
		return f.Proxied(p)
	}
	return f
}

func isMode(name string) bool {
	return slices.ContainsFunc(Modes(), func(m Mode) bool { return m.Name == name })
}

// planPolicy is the mode whose policy the column "plan" has.
const planPolicy = config.ModeIPTables

// Columns are the ways to answer a scenario: by the plan, and for each mode by the plan with its policy, by its rules
// and with real packets.
func Columns() []Column {
	byPlan := func(testing.TB, Scenario, string) flow.Way { return flow.ByPlan() }
	asPlanned := func(_ *plan.Plan, f flow.Flow) flow.Flow { return f }
	columns := []Column{{"plan", "", byPlan, asPlanned}}
	for _, m := range Modes() {
		if m.Name != planPolicy {
			columns = append(columns, Column{m.Name + " plan", m.Name, byPlan, asPlanned})
		}
		byRules := func(testing.TB, Scenario, string) flow.Way { return flow.ByRules(m.Name, m.Compile) }
		columns = append(columns,
			Column{m.Name, m.Name, byRules, m.Expect},
			Column{m.Name + " packets", m.Name, m.inLab, m.Expect})
	}
	return append(columns, overIPTables()...)
}

// inLab answers with real packets through a lab of its own, whose node has the host rules of the scenario.
func (m Mode) inLab(t testing.TB, s Scenario, node string) flow.Way {
	t.Helper()
	top := Topology(t, s, node)
	l := Up(t, top)
	s.loadHostRules(t, l.Node())
	return m.Packets(t, l, top)
}

// Up builds a lab that goes with the test.
func Up(t testing.TB, top lab.Topology) *lab.Lab {
	t.Helper()
	nstest.Require(t)
	l, err := lab.Up(top)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// loadHostRules gives the node what was there before Sluice.
func (s Scenario) loadHostRules(t testing.TB, node *lab.Host) {
	t.Helper()
	for _, step := range s.Steps {
		if step.Name != hostRules {
			continue
		}
		cmd := node.Command(t.Context(), "iptables-restore")
		cmd.Stdin = bytes.NewReader(step.Data)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("load host rules: %v\n%s", err, out)
		}
	}
}

// Packets answers with real packets through the node of a lab, whose kernel the mode keeps equal to the plan.
func (m Mode) Packets(t testing.TB, l *lab.Lab, top lab.Topology) flow.Way {
	t.Helper()
	k := &kernel{mode: m, node: l.Node()}
	return flow.ByPackets(l, top, func(p *plan.Plan, c plan.Changes) error { return k.follow(t, p, c) })
}

// kernel applies a plan on the node of a lab.
type kernel struct {
	mode    Mode
	node    *lab.Host
	backend backend.Backend
	ruleset backend.Ruleset
}

func (k *kernel) follow(t testing.TB, p *plan.Plan, c plan.Changes) error {
	t.Helper()
	return k.node.Do(func() (err error) {
		if k.backend == nil {
			if k.backend, err = k.mode.InKernel(t, k.node); err != nil {
				return err
			}
			k.ruleset = k.backend.Compile(p)
		} else {
			k.ruleset.Update(p, c)
		}
		_, err = k.backend.Apply(t.Context(), k.ruleset, backend.Request{})
		return err
	})
}
