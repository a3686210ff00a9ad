package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"sluice/internal/testkit/flow"
)

// Scenario is one file.
type Scenario struct {
	Name        string // of the file
	Description string
	// Excuse says why a way cannot answer, by the way's name.
	Excuse map[string]string
	Steps  []txtar.File
}

// Title is the first line of the description.
func (s Scenario) Title() string {
	title, _, _ := strings.Cut(s.Description, "\n")
	return title
}

// LoadAll reads every file of a folder.
func LoadAll(t testing.TB, dir string) (all []Scenario) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		s, err := load(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		t.Fatalf("there is no scenario in %s", dir)
	}
	return all
}

func load(file string) (s Scenario, err error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		return s, err
	}
	s = Scenario{
		Name:        strings.TrimSuffix(filepath.Base(file), ".txtar"),
		Description: string(a.Comment),
		Excuse:      map[string]string{},
		Steps:       a.Files,
	}
	for line := range strings.SplitSeq(s.Description, "\n") {
		rest, ok := strings.CutPrefix(line, "not by ")
		if !ok {
			continue
		}
		way, reason, ok := strings.Cut(rest, ": ")
		if !ok {
			return s, fmt.Errorf("%s: %q: want \"not by WAY: REASON\"", file, line)
		}
		s.Excuse[way] = reason
	}
	return s, s.check()
}

// nodes are the names of those that the flows pass; "" is the one under test.
func (s Scenario) nodes() (names []string, err error) {
	seen := map[string]bool{}
	flows, err := s.Flows()
	for _, f := range flows {
		if !seen[f.On] {
			names = append(names, f.On)
		}
		seen[f.On] = true
	}
	return names, err
}

// check refuses a scenario that says nothing or asks nothing.
func (s Scenario) check() error {
	flows, err := s.Flows()
	if err != nil {
		return err
	}
	if len(flows) == 0 {
		return fmt.Errorf("%s has no flows", s.Name)
	}
	if len(strings.Fields(s.Description)) < 10 {
		return fmt.Errorf("%s: the description says too little", s.Name)
	}
	return nil
}

// Flows are those of all steps and modes.
func (s Scenario) Flows() (all []flow.Flow, err error) {
	for _, step := range s.Steps {
		if step.Name != "flows" && !strings.HasPrefix(step.Name, flowsOf) {
			continue
		}
		fs, err := flow.ParseAll(string(step.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		all = append(all, fs...)
	}
	return all, nil
}
