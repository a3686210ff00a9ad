package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice/internal/lab"
)

// story is the lab, the daemon on its node, and what was told of them so far.
type story struct {
	*teller
	Options
	dir    string // all files of the story, in a file system that vanishes with it
	folder manifests
	pods   []*pod
	rules  rules

	lab                 *lab.Lab
	node, client, shell *lab.Host
	daemon              *daemon // nil before it was started for the first time
}

func newStory(ctx context.Context, o Options) (*story, error) {
	if o.Mode == "" {
		o.Mode = o.Choose(ctx)
	}
	const dir = "/run/sluice-demo" // /run is this process's own, since netns.Settle
	s := &story{teller: &teller{out: o.Out, color: o.Color}, Options: o, dir: dir, folder: dir + "/manifests"}
	var err error
	if s.rules, err = s.rulesOf(ctx, o.Mode); err != nil {
		return nil, err
	}
	if o.Try != nil {
		if err := o.Try(ctx, o.Mode); err != nil {
			return nil, err
		}
	}
	return s, os.MkdirAll(string(s.folder), 0o700)
}

func (s *story) close() error {
	var errs []error
	if s.daemon != nil && s.daemon.running() {
		errs = append(errs, s.daemon.end(syscall.SIGTERM))
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (s *story) tell(ctx context.Context) error {
	start := time.Now()
	for _, c := range s.all() {
		if ctx.Err() != nil {
			return fmt.Errorf("after chapter %d: %w", s.chapters, context.Cause(ctx))
		}
		s.chapter(c.title)
		if err := c.tell(ctx); err != nil {
			return fmt.Errorf("chapter %d, %s: %w", s.chapters, strings.ToLower(c.title[:1])+c.title[1:], err)
		}
	}
	s.print("")
	s.say("%d of %d checks held, in %.1f s. This machine's own rules and network were never touched.", s.checks-s.failed, s.checks, time.Since(start).Seconds())
	return nil
}

// chapter is a part of the story.
type chapter struct {
	title string
	tell  func(context.Context) error
}

// all are the chapters of the story.
func (s *story) all() []chapter {
	killed := []chapter{{"The daemon is killed, and connections go on", s.kill}, {"It starts again and has nothing to write", s.restart}}
	if s.proxied() {
		killed = []chapter{
			{"Another daemon takes its place, and connections go on", s.replace},
			{"A daemon that is killed takes its connections with it", s.killProxy},
			{"It starts again and has nothing to write", s.restart},
		}
	}
	return slices.Concat([]chapter{
		{"A node, a few pods, and a client outside", s.build},
		{"The daemon makes the Services' addresses work", s.begin},
		{"Connections spread over the pods", s.spread},
		{"The rules, and the way of one packet through them", s.explain},
		{"A pod fails, and another one leaves", s.lose},
		{"Someone deletes what it wrote", s.vandalize},
	}, killed, []chapter{{"Nothing is left behind", s.cleanUp}})
}

// eventually waits until a condition holds, and is false if it does not within a minute. That ctx has ended is an
// error.
func eventually(ctx context.Context, condition func() (bool, error)) (bool, error) {
	return poll(ctx, 20*time.Millisecond, condition)
}

// poll is eventually with a pause of one's own between two tries.
func poll(ctx context.Context, pause time.Duration, condition func() (bool, error)) (bool, error) {
	deadline := time.After(time.Minute)
	for {
		ok, err := condition()
		if ok || err != nil {
			return ok, err
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-deadline:
			return false, nil
		case <-time.After(pause):
		}
	}
}
