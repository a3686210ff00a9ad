package cases

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/testkit/await"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/flow"
	"sluice/internal/testkit/scenario"
)

// limit is how long a connection may take.
const limit = await.Limit

func TestMain(m *testing.M) { daemon.Main(m, cli.Main) }

// stage is a scenario with the daemon itself on the node of a lab.
type stage struct {
	*testing.T
	lab      *lab.Lab
	topology lab.Topology
	scenario scenario.Scenario
	way      flow.Way
	manifest string // path
	daemon   *daemon.Daemon
}

// open builds the lab of a case.
func open(t *testing.T, name string) *stage {
	t.Helper()
	st := &stage{T: t}
	for _, s := range scenario.LoadAll(t, "testdata") {
		if s.Name == name {
			st.scenario = s
		}
	}
	st.topology = scenario.Topology(t, st.scenario, "")
	st.lab = scenario.Up(t, st.topology)
	st.way = flow.ByPackets(st.lab, st.topology, func(*plan.Plan, plan.Changes) error { return nil })
	st.manifest = filepath.Join(t.TempDir(), "manifests", "objects.yaml")
	if err := os.Mkdir(filepath.Dir(st.manifest), 0o755); err != nil {
		t.Fatal(err)
	}
	return st
}

// start runs the daemon until the test ends.
func (st *stage) start() {
	st.Helper()
	args := append([]string{"--mode=iptables", "--manifests", filepath.Dir(st.manifest), "--iptables-sync-period=2s", "--iptables-min-sync-period=100ms"}, scenario.Reference()...)
	st.daemon = daemon.Start(st, st.lab.Node(), args...)
}

// objects puts the case's number n of objects.yaml, from 1, in place of what was there.
func (st *stage) objects(n int) {
	st.Helper()
	text := scenario.Nodes + "---\n" + st.section("objects.yaml", n)
	if err := os.WriteFile(st.manifest+".new", []byte(text), 0o644); err != nil {
		st.Fatal(err)
	}
	if err := os.Rename(st.manifest+".new", st.manifest); err != nil {
		st.Fatal(err)
	}
	p := plan.Build(plan.Config{NodeName: "node-a"}, plan.Host{}, scenario.Snapshot(st, text))
	if err := st.way.Follow(p, plan.Changes{}); err != nil {
		st.Fatal(err)
	}
}

// flows waits until the case's number n of flows, from 1, are all right.
func (st *stage) flows(n int) {
	st.Helper()
	fs, err := flow.ParseAll(st.section("flows", n))
	if err != nil {
		st.Fatal(err)
	}
	for _, f := range fs {
		st.eventually(func() error { return flow.Check(st.way, f) })
	}
}

func (st *stage) section(name string, n int) string {
	st.Helper()
	for _, s := range st.scenario.Steps {
		if s.Name != name {
			continue
		}
		if n--; n == 0 {
			return string(s.Data)
		}
	}
	st.Fatalf("%s has not that many sections %s", st.scenario.Name, name)
	return ""
}

// eventually tries until f is content.
func (st *stage) eventually(f func() error) {
	st.Helper()
	await.Until(st, 50*time.Millisecond, f)
}

// quiet fails if the daemon complained.
func (st *stage) quiet() {
	st.Helper()
	for _, line := range st.daemon.Complaints() {
		st.Errorf("the daemon complained: %s", line)
	}
}

// node runs a program on the node.
func (st *stage) node(stdin, name string, args ...string) string {
	st.Helper()
	cmd := st.lab.Node().Command(st.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		st.Fatalf("%s is not installed; on Debian or Ubuntu: sudo apt-get install -y iptables conntrack iproute2", name)
	}
	if err != nil {
		st.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
