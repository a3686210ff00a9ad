package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice/test/cluster"
)

// player is a scenario that is under way.
type player struct {
	*bench
	scenario
	loads []*load
}

// verbs are what a step can be; usage is the words after the verb.
func verbs() map[string]struct {
	usage string
	run   func(p *player, t *testing.T, args []string)
} {
	type verb = struct {
		usage string
		run   func(p *player, t *testing.T, args []string)
	}
	return map[string]verb{
		// In the scenario's namespace; "-f FILE" is a file of the scenario.
		"kubectl": {"ARGUMENTS", (*player).kubectl},
		// Every such client gets these answers, through every node or one; see parseQuestion.
		"answers": {"CLIENT[,CLIENT] ADDRESS [on NODE] = ANSWER", (*player).answers},
		// All connections of one client go to the same one of these pods.
		"sticks": {"CLIENT[,CLIENT] ADDRESS [on NODE] = PODS", (*player).sticks},
		// From now on these clients connect all the time, and none may fail until "load ends".
		"load": {"ends | CLIENT[,CLIENT] ADDRESS", (*player).load},
		// A proxy, or each of them one after the other.
		"sluice":      {"start|stop|kill|pause|resume [NODE]", (*player).sluice},
		"api":         {"start|kill|pause|resume", (*player).api},
		"controllers": {"start|kill", (*player).controllers},
		"etcd":        {"compact", (*player).etcd},
		// Fields of the configuration of a node's proxy.
		"configure": {"NODE YAML", (*player).configure},
		"address":   {"NODE ADDRESS…", (*player).address},
		// Each of the proxies, or one, comes to say so.
		"status":  {"[on NODE] TEXT", (*player).status},
		"healthz": {"[on NODE] CODE TEXT", (*player).healthz},
		"metric":  {"[on NODE] SERIES =|>|< NUMBER", (*player).metric},
		"logs":    {"[on NODE] TEXT", (*player).logs},
		// A load balancer, which is outside, asks the node at its port.
		"probe":  {"HOST:PORT [on NODE] CODE TEXT", (*player).probe},
		"events": {"TEXT", (*player).events},
		"sleep":  {"DURATION", (*player).sleep},
		// Write a Service that many times, to no effect.
		"edit": {"SERVICE TIMES", (*player).edit},
		// Compare with a fresh start, as at the end.
		"fresh": {"", (*player).compare},
	}
}

// play runs a scenario in a namespace of its own, which stays.
func (b *bench) play(t *testing.T, s scenario) {
	t.Helper()
	p := &player{bench: b, scenario: s}
	defer p.endLoads(t)
	b.Kubectl(t, "", "create", "namespace", s.name)
	known := verbs()
	for _, st := range s.steps {
		verb, ok := known[st.words[0]]
		if !ok {
			t.Fatalf("line %d: there is no step %q", st.line, st.words[0])
		}
		start := time.Now()
		failedBefore := t.Failed()
		func() {
			defer func() {
				if !failedBefore && t.Failed() {
					t.Logf("that was line %d of the steps: %s (usage: %s %s)", st.line, strings.Join(st.words, " "), st.words[0], verb.usage)
				}
			}()
			verb.run(p, t, st.words[1:])
		}()
		t.Logf("%6.2fs %s", time.Since(start).Seconds(), strings.Join(st.words, " "))
	}
}

func (p *player) kubectl(t *testing.T, args []string) {
	args = append([]string{"--namespace=" + p.name}, args...)
	var stdin string
	if i := slices.Index(args, "-f"); i >= 0 && i+1 < len(args) {
		text, ok := p.files[args[i+1]]
		if !ok {
			t.Fatalf("there is no file %q in the scenario", args[i+1])
		}
		stdin, args[i+1] = text, "-"
	}
	p.Kubectl(t, stdin, args...)
}

// on cuts "on NODE" off args, and returns the proxies that are meant.
func (p *player) on(t *testing.T, args []string) (proxies []*cluster.Proxy, rest []string) {
	t.Helper()
	i := slices.Index(args, "on")
	if i < 0 || i+1 >= len(args) {
		return p.proxies, args
	}
	return []*cluster.Proxy{p.proxy(t, args[i+1])}, slices.Concat(args[:i], args[i+2:])
}

func (p *player) sluice(t *testing.T, args []string) {
	proxies := p.proxies
	if len(args) > 1 {
		proxies = []*cluster.Proxy{p.proxy(t, args[1])}
	}
	for _, proxy := range proxies {
		act(t, proxy.Process, args[0])
	}
}

func (p *player) api(t *testing.T, args []string) {
	act(t, p.APIServer, args[0])
	if args[0] == "start" {
		p.WaitReady(t)
	}
}

func (p *player) controllers(t *testing.T, args []string) { act(t, p.Controllers, args[0]) }

func act(t *testing.T, p *cluster.Process, verb string) {
	t.Helper()
	switch verb {
	case "start":
		p.Start(t)
	case "stop":
		p.Stop(t)
	case "kill":
		p.Kill(t)
	case "pause":
		p.Pause(t)
	case "resume":
		p.Resume(t)
	default:
		t.Fatalf("cannot %s", verb)
	}
}

func (p *player) etcd(t *testing.T, args []string) {
	if !slices.Equal(args, []string{"compact"}) {
		t.Fatalf("cannot %s", args)
	}
	p.Compact(t)
}

func (p *player) configure(t *testing.T, args []string) {
	if err := rewrite(p.proxy(t, args[0]).Config, args[1]); err != nil {
		t.Fatal(err)
	}
}

func (p *player) compare(t *testing.T, _ []string) { p.checkFresh(t) }

func (p *player) address(t *testing.T, args []string) { p.SetNodeAddresses(t, args[0], args[1:]...) }

func (p *player) edit(t *testing.T, args []string) {
	for n := range portNumber(t, args[1]) {
		patch := fmt.Sprintf(`{"metadata": {"annotations": {"edited": "%d"}}}`, n)
		if _, err := p.Client.CoreV1().Services(p.name).Patch(t.Context(), args[0], types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *player) sleep(t *testing.T, args []string) {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
}

func (p *player) events(t *testing.T, args []string) {
	cluster.WaitFor(t, fmt.Sprintf("an event with %q", args[0]), func() error {
		return contains(p.Kubectl(t, "", "get", "events", "--all-namespaces"), args[0])
	})
}

// contains is the error that a text lacks another.
func contains(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q is not in\n%s", part, text)
	}
	return nil
}
