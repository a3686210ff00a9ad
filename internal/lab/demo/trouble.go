package demo

import (
	"context"
	"errors"
	"time"
)

// pace is the pause between two connections of a load.
const pace = time.Millisecond

// lose lets one pod fail, come back, and another one leave.
func (s *story) lose(ctx context.Context) error {
	stays, fails := s.behind("mysql-service")[0], s.behind("mysql-service")[1]
	if err := s.fail(ctx, fails, stays); err != nil {
		return err
	}
	if err := s.recover(ctx, fails); err != nil {
		return err
	}
	return s.leave(ctx, stays, fails)
}

// fail breaks a pod. Its readiness probe sees it at once, where a cluster's would take some seconds.
func (s *story) fail(ctx context.Context, p, other *pod) error {
	if err := s.breakPod(p, other); err != nil {
		return err
	}
	start := time.Now()
	if err := s.folder.putPod(p, false); err != nil {
		return err
	}
	ok, err := s.avoids(ctx, p)
	if err != nil {
		return err
	}
	s.check(ok, "the daemon sends nobody there any more after %d ms", time.Since(start).Milliseconds())
	tally, err := s.shell.Spread(tcp(mysqlAddress), connections)
	if err != nil {
		return err
	}
	s.bars(tally)
	s.check(tally.Endpoints[other.endpoint()] == connections, "%d connections since then: all to %s, none failed", connections, other.name)
	s.print("")
	return nil
}

// breakPod has a pod refuse connections.
func (s *story) breakPod(p, other *pod) error {
	if s.proxied() {
		err := s.passOver(p, other)
		s.say("Its readiness probe sees it now, so its manifest says Ready: \"False\".")
		return err
	}
	s.say("%s breaks and refuses connections; its readiness probe sees it, so its manifest says Ready: \"False\".", p.name)
	return p.fall()
}

func (s *story) recover(ctx context.Context, p *pod) error {
	if err := p.answer(); err != nil {
		return err
	}
	if err := s.folder.putPod(p, true); err != nil {
		return err
	}
	ok, err := eventually(ctx, func() (bool, error) {
		o, err := s.shell.Dial(tcp(mysqlAddress))
		return o.Endpoint == p.endpoint(), err
	})
	s.check(ok, "%s is there again, and gets connections again", p.name)
	return err
}

// leave takes a pod away as a cluster does: it works on until nobody is sent to it any more.
func (s *story) leave(ctx context.Context, p, other *pod) error {
	s.print("")
	s.say("%s is deleted while %s keeps connecting. It works on until nobody is sent to it any more:", p.name, s.shell.Name)
	load := s.shell.Load(tcp(mysqlAddress), pace)
	err := s.folder.removePod(p)
	ok := false
	if err == nil {
		ok, err = s.avoids(ctx, p)
	}
	if err == nil {
		err = p.fall()
	}
	time.Sleep(200 * time.Millisecond) // some more connections
	tally, loadErr := load.Stop()
	if err := errors.Join(err, loadErr); err != nil {
		return err
	}
	s.bars(tally)
	s.check(ok && tally.Forwarded() == tally.Total && tally.Endpoints[other.endpoint()] > 0, "%d connections meanwhile, none failed", tally.Total)
	s.print("")
	return s.recover(ctx, p)
}

// avoids waits until the node's rules do not lead to a pod any more.
func (s *story) avoids(ctx context.Context, p *pod) (bool, error) {
	return eventually(ctx, func() (bool, error) {
		leads, err := s.rules.leadTo(ctx, p.endpoint())
		return !leads, err
	})
}

// vandalize damages the rules and waits for the daemon to mend them.
func (s *story) vandalize(ctx context.Context) error {
	damages, err := s.rules.damages(ctx)
	if err != nil {
		return err
	}
	for i, d := range damages {
		if i > 0 {
			s.print("")
		}
		s.command(d.command)
		if err := s.mend(ctx, d); err != nil {
			return err
		}
	}
	return s.answers(ctx, mysqlAddress)
}

// mend does damage, and waits for the daemon to mend it and to say so.
func (s *story) mend(ctx context.Context, d damage) error {
	before, err := s.log()
	if err != nil {
		return err
	}
	if err := d.do(); err != nil {
		return err
	}
	start := time.Now()
	ok, err := poll(ctx, time.Millisecond, d.mended)
	if err != nil {
		return err
	}
	s.check(ok, "the daemon restored it after %.1f ms (%s), and said:", time.Since(start).Seconds()*1000, d.soon)
	said := ""
	_, err = eventually(ctx, func() (bool, error) {
		log, err := s.log()
		said = restored(log[len(before):])
		return said != "", err
	})
	s.quote(said)
	return err
}
