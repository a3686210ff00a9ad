package hostset

import "log/slog"

// Host keeps the machine as asked. It tells each change and each problem once. It is for one goroutine at a time.
type Host struct {
	log    *slog.Logger
	kernel kernel
	asked  Settings           // last time
	told   map[Setting]string // the problems that stand
}

// New returns a Host that nothing is asked of yet, and which tells log what it does.
func New(log *slog.Logger) *Host {
	return &Host{log: log, kernel: here, told: map[Setting]string{}}
}

// Apply sets what is not as asked, and returns what stays so. It may be called again at any time: with other settings, and
// with the same ones when a problem waits for connection tracking to be loaded.
//
// Settings of connection tracking are those of the calling thread's network namespace.
func (h *Host) Apply(s Settings) []Problem {
	now := h.kernel.facts()
	if s != h.asked {
		for _, note := range Stays(h.asked, s, now) {
			h.log.Info("a setting of the machine stays", "what", note)
		}
		h.asked = s
	}
	steps, problems := Plan(s, now)
	for _, step := range steps {
		if err := h.kernel.write(step.Setting, step.To); err != nil {
			problems = append(problems, Problem{Setting: step.Setting, Have: step.From, Want: step.To, Err: err})
			continue
		}
		h.log.Info("set up the machine", "setting", string(step.Setting), "from", step.From, "to", step.To)
	}
	h.tell(problems)
	return problems
}

// tell logs which problems came up and which are over.
func (h *Host) tell(problems []Problem) {
	stand := map[Setting]string{}
	for _, p := range problems {
		stand[p.Setting] = p.String()
		switch {
		case h.told[p.Setting] == p.String():
		case p.Waits():
			h.log.Info("a setting has to wait", "setting", string(p.Setting), "for", "connection tracking to be loaded")
		default:
			h.log.Warn("the machine is not set up as asked", "error", p.Err, "means", p.Meaning(), "help", p.Help())
		}
	}
	for setting := range h.told {
		if _, still := stand[setting]; !still {
			h.log.Info("problem is over", "setting", string(setting))
		}
	}
	h.told = stand
}
