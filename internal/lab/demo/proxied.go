package demo

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"sluice/internal/lab"
	"sluice/internal/plan"
)

// Where connections live in the daemon, some chapters are others.

// passOver breaks a pod before anybody has noticed it.
func (s *story) passOver(p, other *pod) error {
	s.say("%s breaks and refuses connections. Nobody has noticed: its manifest still says Ready: \"True\".", p.name)
	if err := p.fall(); err != nil {
		return err
	}
	tally, err := s.shell.Spread(tcp(mysqlAddress), connections)
	if err != nil {
		return err
	}
	s.bars(tally)
	s.check(tally.Endpoints[other.endpoint()] == connections, "%d connections, none failed: who is refused by one pod is given to the next", connections)
	s.print("")
	return nil
}

// replace has another daemon take over under load.
func (s *story) replace(ctx context.Context) error {
	open, err := s.connect()
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	load := s.loads()
	s.say("While the pod and the client keep connecting, a second daemon is started, as on an upgrade:")
	s.print("")
	s.command(s.runCommand("--take-over"))
	before := s.daemon
	err = s.startDaemon("--take-over")
	if err == nil {
		_, err = s.firstWrite(ctx)
	}
	time.Sleep(500 * time.Millisecond) // some more connections
	if err := errors.Join(err, s.settle(load)); err != nil {
		return errors.Join(err, before.end(syscall.SIGKILL))
	}
	s.check(open.Echo("are you there?") == nil, "a connection that was open before still works: the first daemon passes it on")
	s.say("The second one was given the sockets at which the first one listened, so that nobody knocked in vain.")
	return s.outlive(ctx, before, open)
}

// outlive ends the last connection of a daemon that another one follows, and waits for the daemon to end.
func (s *story) outlive(ctx context.Context, before *daemon, last *lab.Conn) error {
	if err := last.Close(); err != nil {
		return err
	}
	ok, err := eventually(ctx, func() (bool, error) { return !before.running(), nil })
	s.check(ok, "when that is closed, the first daemon has nothing left to do and ends")
	if !ok {
		err = errors.Join(err, before.end(syscall.SIGKILL))
	}
	return err
}

// killProxy ends the daemon the hard way.
func (s *story) killProxy(context.Context) error {
	open, err := s.connect()
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	s.say("The daemon's connections end with it, and new ones find nobody there. In other modes neither happens:")
	s.print("")
	s.command(fmt.Sprintf("kill -9 %d", s.daemon.cmd.Process.Pid))
	if err := s.daemon.end(syscall.SIGKILL); err != nil {
		return err
	}
	s.check(open.Echo("are you there?") != nil, "a connection that was open before has ended")
	return s.refused()
}

// refused checks that the rules lead to where nobody listens.
func (s *story) refused() error {
	tally, err := s.shell.Spread(tcp(mysqlAddress), connections)
	if err != nil {
		return err
	}
	s.bars(tally)
	s.check(tally.Failed[plan.Reject] == connections, "%d connections, all refused: the rules stand, and nobody is where they lead", connections)
	return nil
}
