package cases

import (
	"path/filepath"
	"testing"

	"sluice/internal/plan"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/flow"
	"sluice/internal/testkit/scenario"
)

// In every mode the daemon removes what an earlier proxy left in iptables, so that it decides nothing any more.
func TestLeftoversOfAnEarlierProxy(t *testing.T) {
	for _, mode := range scenario.Modes() {
		t.Run(mode.Name, func(t *testing.T) {
			if mode.Require != nil {
				mode.Require(t)
			}
			st := open(t, "stale-refusal-of-an-earlier-proxy")
			st.scenario.LoadHostRules(t, st.lab.Node())
			st.objects(1)
			args := append([]string{"--mode", mode.Name, "--manifests", filepath.Dir(st.manifest)}, scenario.Reference()...)
			daemon.Start(t, st.lab.Node(), args...)
			flows, err := flow.ParseAll(st.section("flows", 1))
			if err != nil {
				t.Fatal(err)
			}
			p := plan.Build(plan.Config{NodeName: "node-a"}, plan.Host{}, scenario.Snapshot(t, scenario.Nodes+"---\n"+st.section("objects.yaml", 1)))
			for _, f := range flows {
				st.eventually(func() error { return flow.Check(st.way, mode.Expect(p, f)) })
			}
		})
	}
}
