package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"sluice/internal/backend/iptables"
	"sluice/internal/config"
	"sluice/internal/model"
)

// DiffOptions are what the rules are compared with.
type DiffOptions struct {
	Dump string // a file of iptables-save; empty: this kernel
}

// Diff shows what would change in the kernel, or in a file. A difference is BadNews.
func Diff(ctx context.Context, in Input, o DiffOptions, out io.Writer) (Outcome, error) {
	if in.Config.Mode == config.ModePlan {
		return Good, wrongInputf("--mode plan: there is nothing in a kernel to compare a plan with; want iptables")
	}
	w, err := in.load()
	if err != nil {
		return Good, err
	}
	if o.Dump != "" {
		return w.diffDump(in, o.Dump, out)
	}
	return w.diffLive(ctx, in, out)
}

func (w *world) diffDump(in Input, path string, out io.Writer) (Outcome, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Good, WrongInput(err)
	}
	f, _ := savedFamily(text)
	outcome, err := w.diffSaved(in.options(), f, text, out)
	if err != nil {
		return Good, wrongInputf("%s: %w", path, err)
	}
	return outcome.and(w.outcome), nil
}

// diffSaved compares with what iptables-save printed of one family.
func (w *world) diffSaved(opts iptables.Options, f model.Family, saved []byte, out io.Writer) (Outcome, error) {
	changes, err := iptables.Compile(w.Plan(), opts).Compare(f, saved)
	if err != nil || len(changes) == 0 {
		return Good, err
	}
	for _, c := range changes {
		if _, err := io.WriteString(out, changeText(f, c)); err != nil {
			return Good, err
		}
	}
	return BadNews, nil
}

// changeText is a chain's change as diff -u prints it.
func changeText(f model.Family, c iptables.ChainChange) string {
	name := fmt.Sprintf("%s %s %s", f, c.Table, c.Chain)
	old, now := name, name
	if c.Made {
		old = "no " + name
	}
	if c.Removed {
		now = "no " + name
	}
	text := diff.Diff(old, join(c.Old), now, join(c.New))
	if len(text) == 0 { // an empty chain comes or goes
		return fmt.Sprintf("--- %s\n+++ %s\n", old, now)
	}
	_, text, _ = bytes.Cut(text, []byte("\n")) // a line that names both once more
	return string(text)
}

func join(lines []string) []byte {
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
