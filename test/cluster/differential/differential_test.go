package differential_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"sluice/internal/model"
	"sluice/test/cluster"
)

// The environment repeats a run, or makes it smaller or larger.
const (
	seedEnv     = "SEED"
	servicesEnv = "SERVICES"
	roundsEnv   = "ROUNDS"
)

// usualServices is how many there are. With as many every intended difference is bound to be seen.
const usualServices = 300

func TestModes(t *testing.T) {
	for _, mode := range []string{"nftables", "iptables"} {
		t.Run(mode, func(t *testing.T) { compare(t, mode) })
	}
}

// fromEnv reads a number, or takes what is usual.
func fromEnv(t *testing.T, key string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(key)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return n
}

// compare holds both sides against each other, at first with all Services and then after each round of edits with those
// that were edited.
func compare(t *testing.T, mode string) {
	seed := fromEnv(t, seedEnv, rand.Uint64())
	t.Logf("repeat with %s=%d", seedEnv, seed)
	g := &game{T: t, world: newWorld(t, mode), drawer: newDrawer(seed), seen: map[string]int{}}
	number := int(fromEnv(t, servicesEnv, usualServices))
	g.begin(number)
	for round := range int(fromEnv(t, roundsEnv, 3)) {
		g.edit(round, number/4)
	}
	g.account(number >= usualServices)
}

// game is one run.
type game struct {
	*testing.T
	*world
	*drawer
	subjects []*subject
	seen     map[string]int // by row
	rounds   int
}

// begin makes all Services and asks about them.
func (g *game) begin(number int) {
	start := time.Now()
	var questions []question
	for i := range number {
		o, err := g.create(g.Context(), g.drawer, fmt.Sprintf("s%d", i))
		if err != nil {
			g.Fatal(err)
		}
		g.subjects = append(g.subjects, o)
		questions = append(questions, o.questions()...)
	}
	g.Logf("%d Services are written after %s", number, since(start))
	g.settle()
	g.judge(questions)
}

// edit changes some Services and asks about them, at their old addresses too where nobody else has them by now.
func (g *game) edit(round, number int) {
	var edited []int
	var former, questions []question
	for range number {
		i := g.IntN(len(g.subjects))
		old := *g.subjects[i]
		former = append(former, old.questions()...)
		if err := g.editOne(i); err != nil {
			g.Fatalf("round %d: %v", round, err)
		}
		edited = append(edited, i)
	}
	g.settle()
	slices.Sort(edited)
	for _, i := range slices.Compact(edited) {
		if o := g.subjects[i]; !o.gone {
			questions = append(questions, o.questions()...)
		}
	}
	questions = append(questions, g.unclaimed(former)...)
	for i := range questions {
		questions[i].worn = true
	}
	g.judge(questions)
}

// editOne does one thing that users do to a Service.
func (g *game) editOne(i int) error {
	o, ctx := g.subjects[i], g.Context()
	name := o.service.Name
	if o.gone {
		return g.renew(i, name)
	}
	switch what := g.IntN(100); {
	case what < 40:
		return g.setMembers(ctx, g.drawer, o)
	case what < 70:
		return g.change(ctx, g.drawer, o)
	case what < 80:
		return g.relabel(ctx, o)
	case what < 86:
		return g.remove(ctx, o)
	}
	if err := g.remove(ctx, o); err != nil {
		return err
	}
	return g.renew(i, name)
}

// renew makes another Service of the same name.
func (g *game) renew(i int, name string) error {
	o, err := g.create(g.Context(), g.drawer, name)
	g.subjects[i] = o
	return err
}

// unclaimed are the questions about addresses that no Service has any more, each once.
func (g *game) unclaimed(former []question) (list []question) {
	taken, asked := map[frontend]bool{}, map[string]bool{}
	for _, o := range g.subjects {
		for _, q := range o.questions() {
			taken[q.frontend()] = taken[q.frontend()] || !o.gone
		}
	}
	for _, q := range former {
		if !taken[q.frontend()] && !asked[q.String()] {
			list = append(list, q)
		}
		asked[q.String()] = true
	}
	return list
}

// settle waits until both sides know all that has been written, by a last Service which both must serve.
func (g *game) settle() {
	g.Helper()
	start := time.Now()
	g.rounds++
	s := &v1.Service{}
	s.Name, s.Namespace = fmt.Sprintf("settled-%d", g.rounds), namespace
	policy := v1.IPFamilyPolicyRequireDualStack
	s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &policy, []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	s.Spec.Ports = []v1.ServicePort{{Name: "p", Port: 7, Protocol: v1.ProtocolTCP}}
	o, err := g.settler(s)
	if err != nil {
		g.Fatal(err)
	}
	for _, side := range g.sides {
		for _, ip := range o.service.Spec.ClusterIPs {
			a := netip.MustParseAddr(ip)
			q := question{subject: o, client: pod, target: clusterIP, addr: a, port: 7, protocol: model.TCP, family: model.FamilyOf(a)}
			cluster.WaitFor(g.T, side.Name+" to know all", func() error {
				got, err := g.ask(side, q, glance)
				if err == nil && !got.only("pod 100 elsewhere:8080 sees itself") {
					err = fmt.Errorf("the answer is %s; its log ends with\n%s", got, lastLines(side.proxy.Log()))
				}
				return err
			})
		}
	}
	g.Logf("settled after %s", since(start))
}

func lastLines(log string) string {
	lines := strings.Split(log, "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// judge asks both sides and fails for each difference that is not intended. What differs at a glance is looked at again,
// and what nothing explains once more.
func (g *game) judge(questions []question) {
	start := time.Now()
	findings := g.differences(questions, glance)
	g.Logf("%d questions: %d differ at a glance, after %s", len(questions), len(findings), since(start))
	findings = g.explained(g.differences(questionsOf(findings), stare))
	strange := g.explained(g.differences(questionsOf(findings), stare))
	for i, f := range strange {
		objects := f.subject.service.Name
		if i < 5 {
			objects = f.subject.String()
		}
		g.Errorf("%s\n%s\nSluice:   %s\nupstream: %s", objects, f.question, f.sluice, f.upstream)
	}
	g.Logf("%d differ for no reason, after %s", len(strange), since(start))
}

func since(start time.Time) time.Duration { return time.Since(start).Round(time.Millisecond) }

// explained counts what is intended, and returns the rest.
func (g *game) explained(findings []finding) (rest []finding) {
	for _, f := range findings {
		if row, ok := explain(f); ok {
			g.seen[row]++
		} else {
			rest = append(rest, f)
		}
	}
	return rest
}

// account says how often each intended difference was seen. If all should have been, it fails for those that were not.
func (g *game) account(all bool) {
	for _, i := range differences() {
		if !i.shows(g.mode) {
			continue
		}
		g.Logf("seen %d times: %s", g.seen[i.row], i.row)
		if all && g.seen[i.row] == 0 {
			g.Errorf("docs/differences.md says %q, and nothing showed it", i.row)
		}
	}
}

func questionsOf(findings []finding) (list []question) {
	for _, f := range findings {
		list = append(list, f.question)
	}
	return list
}

// differences asks both sides, one after the other, since the network hands an address to one node.
func (g *game) differences(questions []question, e effort) (findings []finding) {
	var got [2][]answers
	for i, s := range g.sides {
		g.Announce(g.T, s.Name, cluster.ServiceRanges, cluster.ExternalRanges)
		var err error
		if got[i], err = g.askAll(s, questions, e); err != nil {
			g.Fatal(err)
		}
	}
	claims := g.claims()
	for i, q := range questions {
		if a, b := got[0][i], got[1][i]; !slices.Equal(a, b) {
			findings = append(findings, finding{question: q, mode: g.mode, claims: claims[q.frontend()], sluice: a, upstream: b})
		}
	}
	return findings
}
