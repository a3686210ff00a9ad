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

// kill ends the daemon the hard way under load.
func (s *story) kill(context.Context) error {
	open, err := s.connect()
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	load := s.loads()
	s.say("While the pod and the client keep connecting, one new connection every few milliseconds:")
	s.print("")
	s.command(fmt.Sprintf("kill -9 %d", s.daemon.cmd.Process.Pid))
	time.Sleep(200 * time.Millisecond) // some connections before, and more after
	err = s.daemon.end(syscall.SIGKILL)
	time.Sleep(500 * time.Millisecond)
	if err := errors.Join(err, s.settle(load)); err != nil {
		return err
	}
	s.check(open.Echo("are you there?") == nil, "a connection that was open before still works")
	s.say("The rules are the kernel's: it needs the daemon only to learn of changes.")
	return nil
}

// connect opens a connection to a Service.
func (s *story) connect() (*lab.Conn, error) {
	open, o, err := s.shell.Connect(tcp(mysqlAddress))
	if err == nil && o.Action != plan.Forward {
		err = fmt.Errorf("a connection to %s met a %s", mysqlAddress, o)
	}
	return open, err
}

// loads are connections from inside by cluster IP, and from outside by node port.
type loads struct{ inside, outside *lab.Load }

func (s *story) loads() loads {
	return loads{s.shell.Load(tcp(mysqlAddress), pace), s.client.Load(tcp(mysqlNodePort), pace)}
}

// settle ends loads and checks that none of their connections failed.
func (s *story) settle(l loads) error {
	in, errIn := l.inside.Stop()
	out, errOut := l.outside.Stop()
	if err := errors.Join(errIn, errOut); err != nil {
		return err
	}
	s.check(allForwarded(in), "%d connections by cluster IP, none failed", in.Total)
	s.check(allForwarded(out), "%d connections by node port, none failed", out.Total)
	return nil
}

func allForwarded(t lab.Tally) bool { return t.Total > 0 && t.Forwarded() == t.Total }
