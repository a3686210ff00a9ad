package scenarios

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// scenario is one file: what it shows, a section "steps", and the files that the steps name.
type scenario struct {
	name  string // of the file, and of the namespace
	turn  turn
	steps []step
	files map[string]string
}

// turn is when a scenario has its turn: a line "alone: WHY" or "last: WHY" in its description says so.
type turn int

const (
	together turn = iota // with the others that touch only their own namespace
	alone                // it touches what all others use
	last                 // and after all others
)

func turnOf(description string) turn {
	switch {
	case strings.Contains(description, "\nalone: "):
		return alone
	case strings.Contains(description, "\nlast: "):
		return last
	}
	return together
}

// step is one line.
type step struct {
	line  int // in the section
	words []string
}

// loadAll reads all scenarios.
func loadAll(t *testing.T) map[turn][]scenario {
	t.Helper()
	all := map[turn][]scenario{}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
	for _, f := range files {
		s, err := read(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[s.turn] = append(all[s.turn], s)
	}
	return all
}

func read(file string) (s scenario, err error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		return s, err
	}
	s = scenario{
		name:  strings.TrimSuffix(filepath.Base(file), ".txtar"),
		turn:  turnOf(string(a.Comment)),
		files: map[string]string{},
	}
	for _, f := range a.Files {
		s.files[f.Name] = string(f.Data)
	}
	if len(strings.Fields(string(a.Comment))) < 8 {
		return s, fmt.Errorf("the description says too little")
	}
	for i, line := range strings.Split(s.files["steps"], "\n") {
		words, err := split(line)
		if err != nil {
			return s, fmt.Errorf("steps, line %d: %w", i+1, err)
		}
		if len(words) > 0 {
			s.steps = append(s.steps, step{i + 1, words})
		}
	}
	if len(s.steps) == 0 {
		return s, fmt.Errorf("there are no steps")
	}
	return s, nil
}

// split cuts a line into words as a shell does, with single quotes only. What follows a # is a comment.
func split(line string) (words []string, err error) {
	for line = strings.TrimSpace(line); line != "" && line[0] != '#'; line = strings.TrimLeft(line, " ") {
		var word strings.Builder
		for line != "" && line[0] != ' ' {
			if line[0] != '\'' {
				word.WriteByte(line[0])
				line = line[1:]
				continue
			}
			quoted, rest, closed := strings.Cut(line[1:], "'")
			if !closed {
				return nil, fmt.Errorf("a ' has no end")
			}
			word.WriteString(quoted)
			line = rest
		}
		words = append(words, word.String())
	}
	return words, nil
}
