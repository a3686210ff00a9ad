package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"sluice/hack/vm/guest"
)

// report prints what the guest tells of the suites, as go test does.
type report struct {
	suites []suite
	json   bool
	to     io.Writer
	failed bool

	next  int // the suite that runs, or is to begin
	began time.Time
	out   io.Writer // nil: none runs
	close func() error
}

// heard takes an event. The first of a suite begins it.
func (r *report) heard(e guest.Event) error {
	if err := r.begin(); err != nil {
		return err
	}
	if _, err := r.out.Write(e.Output); err != nil || e.Exit == nil {
		return err
	}
	return r.end(*e.Exit)
}

// missed says of each suite that did not end why.
func (r *report) missed(why string) error {
	for r.next < len(r.suites) {
		if err := r.begin(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(r.out, "\n%s\n", why); err != nil {
			return err
		}
		if err := r.end(-1); err != nil {
			return err
		}
		why = "not run: the machine had ended"
	}
	return nil
}

func (r *report) begin() error {
	if r.out != nil {
		return nil
	}
	r.began = time.Now()
	r.out, r.close = r.to, func() error { return nil }
	if !r.json {
		return nil
	}
	cmd := exec.Command("go", "tool", "test2json", "-t", "-p", r.suites[r.next].pkg+" (vm)")
	cmd.Stdout, cmd.Stderr = r.to, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	r.out, r.close = in, func() error { return errors.Join(in.Close(), cmd.Wait()) }
	return cmd.Start()
}

// end writes the line that go test writes: test2json takes the result from it.
func (r *report) end(status int) error {
	result := "ok  "
	if status != 0 {
		result = "FAIL"
		r.failed = true
		if _, err := fmt.Fprintf(r.out, "exit status %d\n", status); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(r.out, "%s\t%s\t%.3fs\n", result, r.suites[r.next].pkg, time.Since(r.began).Seconds())
	if err != nil {
		return err
	}
	r.next++
	r.out = nil
	return r.close()
}
