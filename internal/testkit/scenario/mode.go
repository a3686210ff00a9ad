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
	// Becomes is what is to become of a flow where the mode cannot do what the plan says; nil: just that.
	Becomes func(*plan.Plan, flow.Flow) flow.Flow
	// Require ends a test that needs more of the kernel than it has; nil: every kernel will do.
	Require func(testing.TB)
}

// Modes are all that there are. A new one is one line here. Each has a policy of its own.
func Modes() []Mode {
	return []Mode{
		{Name: config.ModeIPTables, Compile: compileIPTables, InKernel: iptablesInKernel},
		{Name: config.ModeNFTables, Compile: compileNFTables, InKernel: nftablesInKernel},
		{Name: config.ModeIPVS, Compile: compileIPVS, InKernel: ipvsInKernel, Require: nstest.RequireIPVS, Becomes: virtual},
		{Name: config.ModeUserspace, Compile: compileUserspace, InKernel: userspaceInKernel, Becomes: viaProxy},
	}
}

// Expect is what becomes of a flow in this mode that is planned to end as its Want says.
func (m Mode) Expect(p *plan.Plan, f flow.Flow) flow.Flow {
	if m.Becomes == nil {
		return f
	}
	return m.Becomes(p, f)
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
	columns := []Column{{Name: "plan", open: byPlan, expect: asPlanned}}
	for _, m := range Modes() {
		if m.Name != planPolicy {
			columns = append(columns, Column{Name: m.Name + " plan", Mode: m.Name, open: byPlan, expect: asPlanned})
		}
		columns = append(columns, m.columns(m.Name, m.Name)...)
	}
	columns = append(columns, UserspaceOverIPTables().columns("", planPolicy)...)
	return append(columns, IPVSOverIPTables().columns("", config.ModeIPVS)...)
}

// columns are those of a mode by its rules and by real packets.
func (m Mode) columns(about, policy string) []Column {
	byRules := func(testing.TB, Scenario, string) flow.Way { return flow.ByRules(m.Name, m.Compile) }
	c := Column{Name: m.Name, Mode: about, policy: policy, open: byRules, expect: m.Expect}
	packets := c
	packets.Name, packets.open, packets.require = m.Name+" packets", m.inLab, m.Require
	return []Column{c, packets}
}

// inLab answers with real packets through a lab of its own, whose node has the host rules of the scenario.
func (m Mode) inLab(t testing.TB, s Scenario, node string) flow.Way {
	t.Helper()
	top := Topology(t, s, node)
	l := Up(t, top)
	s.LoadHostRules(t, l.Node())
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

// LoadHostRules gives the node what was there before Sluice.
func (s Scenario) LoadHostRules(t testing.TB, node *lab.Host) {
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
