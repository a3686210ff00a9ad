package scenario

import (
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/tools/txtar"

	"sluice/internal/config"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/flow"
)

// Nodes are those of the reference cluster, in YAML.
//
//go:embed nodes.yaml
var Nodes string

// Reference is the policy of a scenario without a configuration of its own, as kube-proxy's flags.
func Reference() []string {
	return []string{"--hostname-override=" + referenceNode, "--cluster-cidr=10.244.0.0/16,fd00:244::/56"}
}

// hostRules is the section of rules that are not Sluice's.
const hostRules = "host rules"

// referenceNode is the one under test.
const referenceNode = "node-a"

// flowsOf begins the names of sections of flows that are right in some modes alone.
const flowsOf = "flows "

// world is one node through all steps of a scenario.
type world struct {
	node    string // empty: the one that the configuration names
	mode    string // whose policy it has
	way     flow.Way
	planner *plan.Planner
	nodes   string // YAML
	objects string
	snap    *model.Snapshot
	changes plan.Changes // since the way last followed
	host    []netip.Addr
}

func newWorld(t testing.TB, node, mode string, way flow.Way) *world {
	t.Helper()
	w := &world{node: node, mode: mode, way: way, nodes: Nodes, snap: model.NewSnapshot()}
	w.planner = plan.NewPlanner(w.policy(t, Reference()))
	return w
}

// step works one section through. It returns the flows to ask now.
func (w *world) step(t testing.TB, s txtar.File) []flow.Flow {
	t.Helper()
	switch s.Name {
	case "config.yaml":
		w.note(w.planner.SetConfig(w.policy(t, []string{"--config=" + save(t, s)})))
	case "nodes.yaml":
		w.nodes = string(s.Data)
	case "objects.yaml":
		w.objects = string(s.Data)
		w.read(t)
	case "addresses":
		w.host = parseAddrs(t, string(s.Data))
		w.setHost()
	case hostRules: // they are in the kernel, if there is one
	case "flows":
		return parseFlows(t, s)
	default:
		modes, ok := strings.CutPrefix(s.Name, flowsOf)
		if !ok {
			t.Fatalf("section %q is none of a scenario's", s.Name)
		}
		return w.flowsOfModes(t, s, strings.Fields(modes))
	}
	return nil
}

// flowsOfModes are those of a section if this world's mode is one that it is for.
func (w *world) flowsOfModes(t testing.TB, s txtar.File, modes []string) []flow.Flow {
	t.Helper()
	for _, m := range modes {
		if !isMode(m) {
			t.Fatalf("section %q: there is no mode %q", s.Name, m)
		}
	}
	if !slices.Contains(modes, w.mode) {
		return nil
	}
	return parseFlows(t, s)
}

func parseFlows(t testing.TB, s txtar.File) []flow.Flow {
	t.Helper()
	fs, err := flow.ParseAll(string(s.Data))
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// policy is what flags say, for the node of this world in its mode.
func (w *world) policy(t testing.TB, args []string) plan.Config {
	t.Helper()
	if w.node != "" {
		args = append(slices.Clip(args), "--hostname-override="+w.node)
	}
	set := pflag.NewFlagSet("scenario", pflag.ContinueOnError)
	flags := config.NewFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, _, err := flags.Load()
	if err != nil {
		t.Fatal(err)
	}
	c, _ = c.For(w.mode)
	return c.Plan
}

// read brings the planner up to date with the objects. Nodes among them take the place of the reference cluster's.
func (w *world) read(t testing.TB) {
	t.Helper()
	now := Snapshot(t, w.objects)
	if len(now.Nodes) == 0 {
		now.Nodes = Snapshot(t, w.nodes).Nodes
	}
	w.note(w.planner.Update(model.Diff(w.snap, now)))
	w.snap = now
	w.setHost()
}

// setHost tells the planner what is on the node's interfaces. An address there outlives the Node object.
func (w *world) setHost() {
	name := w.node
	if name == "" {
		name = referenceNode
	}
	addresses := w.host
	if n := w.snap.Nodes[name]; addresses == nil && n != nil {
		addresses = n.InternalIPs
	}
	host := plan.Host{Addresses: addresses}
	for _, a := range slices.Backward(addresses) {
		host.Primary[model.FamilyOf(a)] = a
	}
	w.note(w.planner.SetHost(host))
}

// note keeps changes until the way follows.
func (w *world) note(c plan.Changes) {
	w.changes.Node = w.changes.Node || c.Node
	w.changes.Ports = append(w.changes.Ports, c.Ports...)
}

// ask checks the flows that pass this node, as they are expected to end.
func (w *world) ask(t testing.TB, flows []flow.Flow, expect expectation) {
	t.Helper()
	if err := w.way.Follow(w.planner.Plan(), w.changes); err != nil {
		t.Fatal(err)
	}
	w.changes = plan.Changes{}
	var here []flow.Flow
	for _, f := range flows {
		if f.On == w.node {
			here = append(here, expect(w.planner.Plan(), f))
		}
	}
	for _, err := range flow.CheckAll(w.way, here) {
		t.Error(err)
	}
}

func save(t testing.TB, s txtar.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), s.Name)
	if err := os.WriteFile(path, s.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parseAddrs(t testing.TB, text string) (all []netip.Addr) {
	t.Helper()
	for s := range strings.FieldsSeq(text) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			t.Fatal(fmt.Errorf("addresses: %w", err))
		}
		all = append(all, a)
	}
	return all
}
