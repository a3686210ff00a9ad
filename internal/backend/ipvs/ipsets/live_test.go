package ipsets

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/iptables/rules"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/netns"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// node is a namespace with a Backend that writes sets and the tables of one variant in it.
type node struct {
	testing.TB
	ns      *netns.NS
	deps    Deps
	backend *Backend
}

// eachVariant runs a test on a node of each variant of the programs.
func eachVariant(t *testing.T, test func(n *node)) {
	t.Helper()
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		t.Run(string(v), func(t *testing.T) {
			nstest.Require(t)
			ns, err := netns.New()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ns.Close() })
			n := &node{TB: t, ns: ns}
			n.do(func(ctx context.Context) (err error) {
				n.deps, _, err = System(ctx, v)
				return err
			})
			n.restart()
			test(n)
		})
	}
}

// restart is a new process that knows nothing.
func (n *node) restart() { n.backend = New(DefaultOptions(), n.deps) }

func (n *node) do(f func(context.Context) error) {
	n.Helper()
	if err := n.ns.Do(func() error { return f(n.Context()) }); err != nil {
		n.Fatal(err)
	}
}

func (n *node) apply(r *Ruleset, recheck bool) (result backend.Result) {
	n.Helper()
	n.do(func(ctx context.Context) (err error) {
		result, err = n.backend.Apply(ctx, r, backend.Request{Recheck: recheck})
		return err
	})
	return result
}

// give hands text to iptables-restore --noflush, as somebody else.
func (n *node) give(f model.Family, text string) {
	n.Helper()
	n.do(func(ctx context.Context) error { return n.deps.Tables[f].Restore(ctx, []byte(text)) })
}

// ipset runs the program, as somebody else.
func (n *node) ipset(args string) string {
	n.Helper()
	out, err := n.ns.Command(n.Context(), "ipset", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		n.Fatalf("ipset %s: %v: %s", args, err, out)
	}
	return string(out)
}

func (n *node) rules(f model.Family) (rs *rules.Ruleset) {
	n.Helper()
	n.do(func(ctx context.Context) (err error) {
		rs, err = readRules(ctx, n.deps.Tables[f])
		return err
	})
	return rs
}

// want compares sets and rules with what r renders.
func (n *node) want(r *Ruleset) {
	n.Helper()
	var want []string
	for _, f := range r.families {
		for k := range kinds {
			if f.present(k) {
				want = append(want, f.set(k).Lines()...)
			}
		}
		if d := diff(f.tables, n.rules(f.family)); d.size() != 0 {
			n.Errorf("%s rules differ:\n%s", f.family, d.text())
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, n.saved()); diff != "" {
		n.Errorf("sets (-want +kernel):\n%s", diff)
	}
}

// saved is what ipset save prints, sorted.
func (n *node) saved() (lines []string) {
	n.Helper()
	text := regexp.MustCompile(` (bucketsize|initval) \w+`).ReplaceAllString(n.ipset("save"), "")
	text = regexp.MustCompile(`hashsize \w+`).ReplaceAllString(text, "hashsize 1024") // it grows
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(lines)
	return lines
}

func compiled(p *plan.Plan) *Ruleset { return Compile(p, DefaultOptions()) }

// dualStack are the rules of a Service of two families that has everything.
func dualStack() *Ruleset {
	s, sl, six := everything()
	return compiled(sample.Plan(plan.Config{GuardClusterIPs: true}, s, sl, six))
}

func everything() (*model.Service, *model.Slice, *model.Slice) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	s.ClusterIPs = sample.Addrs("10.96.0.10", "fd00:96::a")
	s.ExternalPolicy, s.HealthCheckNodePort = model.PolicyLocal, 32000
	six := *sl
	six.Name.Name, six.Family = "web-6", model.IPv6
	six.Endpoints = []model.Endpoint{{Address: sample.Addrs("fd00:244:2::5")[0], Node: "node-b", Ready: true, Serving: true}}
	return s, sl, &six
}
