package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"sluice/hack/vm/guest"
)

func exit(run, status int) guest.Event { return guest.Event{Run: run, Exit: &status} }

func says(run int, text string) guest.Event { return guest.Event{Run: run, Output: []byte(text)} }

// results is what `go test -json` says became of packages.
func results(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	became := map[string]string{}
	for d := json.NewDecoder(r); ; {
		var e struct{ Action, Package, Test string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return became
		} else if err != nil {
			t.Fatal(err)
		}
		if e.Test == "" && (e.Action == "pass" || e.Action == "fail") {
			became[e.Package] = e.Action
		}
	}
}

// The exit status counts, whatever the tests wrote, and so does a suite that never ended, or never began.
func TestReport(t *testing.T) {
	suites := []suite{{pkg: "good"}, {pkg: "bad"}, {pkg: "late"}, {pkg: "cut"}, {pkg: "never"}}
	for _, asJSON := range []bool{true, false} {
		var out bytes.Buffer
		r := report{suites: suites, json: asJSON, to: &out}
		for _, e := range []guest.Event{
			{},
			says(0, "PASS\n"), exit(0, 0),
			says(1, "--- FAIL: TestX (0.00s)\nFAIL\n"), exit(1, 1),
			says(2, "PASS\n"), says(2, "goroutines are left\n"), exit(2, 1),
			says(3, "PASS\n"),
		} {
			if err := r.heard(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.missed("Kernel panic"); err != nil {
			t.Fatal(err)
		}
		if !r.failed {
			t.Error("nothing failed")
		}
		if !asJSON {
			if got := out.String(); strings.Count(got, "FAIL\t") != 4 || strings.Count(got, "ok  \t") != 1 || !strings.Contains(got, "Kernel panic") {
				t.Errorf("%s", got)
			}
			continue
		}
		want := map[string]string{"good (vm)": "pass", "bad (vm)": "fail", "late (vm)": "fail", "cut (vm)": "fail", "never (vm)": "fail"}
		if got := results(t, &out); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
