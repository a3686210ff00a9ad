package reconcile

import (
	"log/slog"
	"slices"
	"time"

	"sluice/internal/plan"
)

// notices tells each problem once when it comes up, and once when it is gone.
type notices struct {
	log    *slog.Logger
	topics map[any][]string
	told   time.Time // when remind last told something
	minute time.Time // when lines was 0
	lines  int
}

// linesLimit is how many lines a minute tell of problems at the most: who may change one Service can have problems come
// and go hundreds of times a second.
const linesLimit = 600

// line has one line told of problems, if there is room for it.
func (n *notices) line(tell func()) {
	if now := time.Now(); now.Sub(n.minute) >= time.Minute {
		n.minute, n.lines = now, 0
	}
	n.lines++
	switch {
	case n.lines < linesLimit:
		tell()
	case n.lines == linesLimit:
		n.log.Warn("problems come and go too fast to tell each; sluice status has those that there are")
	}
}

// nodeTopic is what is wrong with the node. It touches every Service, so it is told again and again.
const nodeTopic = "node"

const remindEvery = 10 * time.Minute

// remind repeats what is wrong with the node.
func (n *notices) remind(now time.Time) {
	if now.Sub(n.told) < remindEvery {
		return
	}
	if !n.told.IsZero() {
		for _, p := range n.topics[nodeTopic] {
			n.log.Warn("problem", "what", p)
		}
	}
	n.told = now
}

// noticesLimit is how many problems one change of a topic names at the most: an object may have thousands.
const noticesLimit = 100

// set replaces all problems of a topic.
func (n *notices) set(topic any, problems []string) {
	was := n.topics[topic]
	if slices.Equal(was, problems) {
		return
	}
	n.tell(without(problems, was), without(was, problems))
	switch {
	case len(problems) == 0:
		delete(n.topics, topic)
	case n.topics == nil:
		n.topics = map[any][]string{topic: problems}
	default:
		n.topics[topic] = problems
	}
}

// tell names problems that came up and those that are over.
func (n *notices) tell(fresh, over []string) {
	for _, p := range fresh[:min(len(fresh), noticesLimit)] {
		n.line(func() { n.log.Warn("problem", "what", p) })
	}
	if more := len(fresh) - noticesLimit; more > 0 {
		n.line(func() { n.log.Warn("more problems of the same object or file; sluice status has all", "more", more) })
	}
	for _, p := range over[:min(len(over), noticesLimit)] {
		n.line(func() { n.log.Info("problem is over", "what", p) })
	}
	if more := len(over) - noticesLimit; more > 0 {
		n.line(func() { n.log.Info("more problems are over", "more", more) })
	}
}

// without is what is in a list and not in another.
func without(list, other []string) (rest []string) {
	others := make(map[string]bool, len(other))
	for _, s := range other {
		others[s] = true
	}
	for _, s := range list {
		if !others[s] {
			rest = append(rest, s)
		}
	}
	return rest
}

// noticeProblems brings the notices up to date with what changed in the plan.
func (l *Loop) noticeProblems(p *plan.Plan, changes plan.Changes) {
	l.notices.set(nodeTopic, texts(p.NodeProblems()))
	for _, c := range changes.Ports {
		var problems []plan.Problem
		if c.New != nil {
			problems = c.New.Problems()
		}
		l.notices.set(c.ID, texts(problems))
	}
}

func texts(problems []plan.Problem) (ts []string) {
	for _, p := range problems {
		ts = append(ts, p.String())
	}
	return ts
}
