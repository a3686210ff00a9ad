package cases

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/testkit/flow"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

// asSluice in the environment makes this test program be sluice.
const asSluice = "CASES_AS_SLUICE"

// limit is how long anything may take to come true; a test that passes never waits for it.
const limit = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asSluice) == "" {
		nstest.Main(m)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// stage is a scenario with the daemon itself on the node of a lab.
type stage struct {
	*testing.T
	lab      *lab.Lab
	topology lab.Topology
	scenario scenario.Scenario
	way      flow.Way
	manifest string // path
	log      log
}

// log is what the daemon says.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
	args := append([]string{"run", "--manifests", filepath.Dir(st.manifest), "--iptables-sync-period=2s", "--iptables-min-sync-period=100ms"}, scenario.Reference()...)
	cmd := st.lab.Node().Command(context.Background(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asSluice+"=1", "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = &st.log, &st.log
	if err := cmd.Start(); err != nil {
		st.Fatal(err)
	}
	st.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			st.Errorf("sluice run: %v", err)
		}
		if st.Failed() {
			st.Logf("the daemon's log:\n%s", st.log.String())
		}
	})
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
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	st.Errorf("after %s: %v", limit, err)
}

// quiet fails if the daemon complained.
func (st *stage) quiet() {
	st.Helper()
	for line := range strings.SplitSeq(st.log.String(), "\n") {
		if strings.Contains(line, "ERR") || strings.Contains(line, "level=ERROR") {
			st.Errorf("the daemon complained: %s", line)
		}
	}
}

// node runs a program on the node.
func (st *stage) node(stdin, name string, args ...string) string {
	st.Helper()
	cmd := st.lab.Node().Command(st.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		st.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
