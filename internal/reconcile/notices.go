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

// set replaces all problems of a topic.
func (n *notices) set(topic any, problems []string) {
	was := n.topics[topic]
	for _, p := range problems {
		if !slices.Contains(was, p) {
			n.log.Warn("problem", "what", p)
		}
	}
	for _, p := range was {
		if !slices.Contains(problems, p) {
			n.log.Info("problem is over", "what", p)
		}
	}
	switch {
	case len(problems) == 0:
		delete(n.topics, topic)
	case n.topics == nil:
		n.topics = map[any][]string{topic: problems}
	default:
		n.topics[topic] = problems
	}
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
