package hostset

import "fmt"

// Facts is what the machine says of itself.
type Facts struct {
	CPUs   int // online, whichever of them this process may use
	Values map[Setting]Reading
}

// Reading is the value of a setting, or why there is none.
type Reading struct {
	Value int
	Err   error // an fs.ErrNotExist where connection tracking is not loaded yet
}

// Step is one value to write.
type Step struct {
	Setting  Setting
	From, To int
}

// Plan lists what has to be written so that the machine is as asked, and what cannot be because it could not be read. Both
// are empty if it is so already.
func Plan(s Settings, now Facts) (steps []Step, problems []Problem) {
	for _, w := range s.wants(now.CPUs) {
		switch have := now.Values[w.setting]; {
		case have.Err != nil:
			problems = append(problems, Problem{Setting: w.setting, Want: w.value, Err: have.Err, unread: true})
		case !w.met(have.Value):
			steps = append(steps, Step{Setting: w.setting, From: have.Value, To: w.value})
		}
	}
	return steps, problems
}

// Stays says which values were asked for before and are not any more, but stay: Sluice does not know what else relies
// on them by now.
func Stays(before, s Settings, now Facts) (notes []string) {
	asked := map[Setting]want{}
	for _, w := range s.wants(now.CPUs) {
		asked[w.setting] = w
	}
	for _, was := range before.wants(now.CPUs) {
		have := now.Values[was.setting]
		if have.Err != nil || was.setting == Buckets { // they go with the limit
			continue
		}
		w, still := asked[was.setting]
		switch {
		case !still:
			notes = append(notes, fmt.Sprintf("%s stays at %d: the configuration leaves it as it is now", was.setting, have.Value))
		case w.atLeast && w.value < was.value && w.value < have.Value:
			notes = append(notes, fmt.Sprintf("%s stays at %d: it is only ever raised, and %d is asked for now", was.setting, have.Value, w.value))
		}
	}
	return notes
}
