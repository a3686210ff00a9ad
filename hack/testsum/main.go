// Testsum counts tests: it reads the output of `go test -json` on standard input, prints a line per package and the
// whole output of what failed, names what was skipped and why, and adds the counts to a file.
//
//	go test -json ./... | go run ./hack/testsum -to counts.json
//	go run ./hack/testsum -total counts.json
//
// A test with subtests does not count beside them, unless it fails by itself. A package that fails without a failed
// test, because it does not build or ends early, counts as one failure. Exit status 1 means something failed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
)

func main() {
	to := flag.String("to", "", "file to add the counts to")
	total := flag.String("total", "", "print the counts of this file and read nothing")
	step := flag.String("step-failed", "", "count a failure of this name and read nothing")
	flag.Parse()
	if err := run(*to, *total, *step); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("there are failures")

func run(to, total, step string) error {
	if total != "" {
		c, err := load(total)
		if err != nil {
			return err
		}
		fmt.Println(c)
		return nil
	}
	var c counts
	if step != "" {
		c = counts{Failed: 1, Steps: []string{step}}
	} else {
		s := newSummary()
		if err := s.read(os.Stdin); err != nil {
			return err
		}
		s.print(os.Stdout)
		c = s.counts()
	}
	if err := add(to, c); err != nil {
		return err
	}
	if c.Failed > 0 && step == "" {
		return errFailed
	}
	return nil
}

// counts is what the file holds.
type counts struct {
	Passed, Failed, Skipped int
	Steps                   []string // failures that are no tests
}

// String is the last line of a CI run.
func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
}

func load(file string) (c counts, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

func add(file string, more counts) error {
	if file == "" {
		return nil
	}
	c, err := load(file)
	if err != nil {
		return err
	}
	c.Passed += more.Passed
	c.Failed += more.Failed
	c.Skipped += more.Skipped
	c.Steps = append(c.Steps, more.Steps...)
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// decode calls f for each event of r. A line that is no event is passed on as output of no test.
func decode(r io.Reader, f func(event)) error {
	return eachLine(r, func(line []byte) {
		var e event
		if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil {
			e = event{Action: "output", Output: string(line) + "\n"}
		}
		f(e)
	})
}
