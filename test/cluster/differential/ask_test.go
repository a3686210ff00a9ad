package differential_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// answers are all different ones that a question had, in words and in order.
type answers []string

func (a answers) String() string { return strings.Join(a, "; ") }

// only reports whether there was this answer and no other.
func (a answers) only(s string) bool { return len(a) == 1 && a[0] == s }

// effort is how thoroughly to ask.
type effort struct {
	perEndpoint, most int           // connections
	wide              int           // of them at a time, and the least number of them
	patience          time.Duration // how long a connection may be silent
}

// glance may miss an endpoint, in one of fifty questions; stare misses one in a hundred thousand.
var (
	glance = effort{perEndpoint: 4, most: 24, wide: 4, patience: 250 * time.Millisecond}
	stare  = effort{perEndpoint: 12, most: 64, wide: 8, patience: time.Second}
)

// again is how long the next one may be where that was silence, which counts if it is silent, too: this machine may be
// busy. A refusal of TCP that comes while connect(2) is still at work is lost, and comes again after a second; on the
// client's own node that is each of them.
func again(p model.Protocol) time.Duration {
	if p == model.TCP {
		return 1700 * time.Millisecond
	}
	return time.Second
}

// atOnce is how many questions are asked at a time. Most of them wait.
const atOnce = 192

// askAll asks a side all questions, with everything that is for a Service handed to its node.
func (w *world) askAll(s *side, questions []question, e effort) ([]answers, error) {
	all := make([]answers, len(questions))
	errs := make([]error, len(questions))
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, q := range questions {
		free <- struct{}{}
		wg.Go(func() {
			all[i], errs[i] = w.ask(s, q, e)
			<-free
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// connections is how many it takes for a number of endpoints.
func (e effort) connections(endpoints int) int {
	return min(max(e.perEndpoint*endpoints, e.wide), e.most)
}

// ask asks one question of a side. Where another Service answers, its endpoints are those that count, and it may have more.
func (w *world) ask(s *side, q question, e effort) (answers, error) {
	all := map[string]bool{}
	for asked := 0; ; {
		n := e.connections(max(q.subject.count(q.family), len(all))) - asked
		if n <= 0 {
			return slices.Sorted(maps.Keys(all)), nil
		}
		asked += n
		if err := w.askTimes(s, q, e, n, all); err != nil {
			return nil, err
		}
	}
}

// askTimes opens n connections, and adds what came of them to all.
func (w *world) askTimes(s *side, q question, e effort, n int, all map[string]bool) error {
	seen := make([]map[string]bool, e.wide)
	errs := make([]error, e.wide)
	var wg sync.WaitGroup
	for i := range seen {
		seen[i] = map[string]bool{}
		wg.Go(func() { errs[i] = w.repeat(s, q, e.patience, (n+e.wide-1)/e.wide, seen[i]) })
	}
	wg.Wait()
	for _, own := range seen {
		maps.Copy(all, own)
	}
	return errors.Join(errs...)
}

// repeat opens n connections, one after the other, and adds what came of them to seen. Who gets nowhere by the first
// is not asked for more.
func (w *world) repeat(s *side, q question, patience time.Duration, n int, seen map[string]bool) error {
	for i := range n {
		if i == 1 && nowhereAtAll(seen) {
			return nil
		}
		h, d := w.dial(s, q)
		d.Timeout = patience
		o, word, err := w.connect(s, q, h, d)
		if err == nil && o.Action == plan.Drop && !seen[word] {
			d.Timeout = max(patience, again(q.protocol))
			o, word, err = w.connect(s, q, h, d)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", s.Name, q, err)
		}
		seen[word] = true
		if !q.sticky() || o.Action != plan.Forward {
			continue
		}
		next, word, err := w.connect(s, q, h, d)
		if err != nil {
			return err
		}
		if next.Action == plan.Forward && next.Endpoint != o.Endpoint {
			seen[word+", after another"] = true
		}
	}
	return nil
}

// nowhereAtAll reports whether there was one answer so far, and not an endpoint's.
func nowhereAtAll(seen map[string]bool) bool {
	return len(seen) == 1 && (seen[plan.Reject.String()] || seen[plan.Drop.String()] || seen[plan.Unhandled.String()] || seen[silence])
}

// connect opens one connection and says in words what came of it.
func (w *world) connect(s *side, q question, h *lab.Host, d lab.Dial) (lab.Outcome, string, error) {
	o, err := h.Dial(d)
	if errors.Is(err, syscall.ENOPROTOOPT) || errors.Is(err, syscall.EPROTO) {
		return o, "a machine has no SCTP", nil
	}
	if err != nil {
		return o, "", err
	}
	return o, w.words(s, q, d, o), nil
}

// silence is both what is dropped and what leaves the node unhandled, over IPv4: there the network tells one address
// once a second that it is not to send, which is a limit of the kernel's that no namespace can change.
const silence = "silence"

// words are what an outcome is to a side.
func (w *world) words(s *side, q question, d lab.Dial, o lab.Outcome) string {
	if (o.Action == plan.Drop || o.Action == plan.Unhandled) && q.family == model.IPv4 {
		return silence
	}
	if o.Action != plan.Forward {
		return o.Action.String()
	}
	peer := w.name(s, o.Peer.Addr())
	switch {
	case o.Peer.Addr() == d.From:
		peer = "itself"
	case !d.From.IsValid() && q.client == process && q.target != loopback && o.Peer.Addr() == s.Address(model.FamilyOf(d.To.Addr())):
		peer = "the machine here"
	}
	if q.sticky() && (q.alone() || q.worn) {
		return "an endpoint sees " + peer
	}
	return fmt.Sprintf("%s:%d sees %s", w.name(s, o.Endpoint.Addr()), o.Endpoint.Port(), peer)
}
