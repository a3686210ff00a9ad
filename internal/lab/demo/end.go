package demo

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// restart starts the daemon again over the rules that it left.
func (s *story) restart(ctx context.Context) error {
	before, generation, err := s.rules.state(ctx)
	if err != nil {
		return err
	}
	if err := s.startDaemon(); err != nil {
		return err
	}
	changed, err := s.firstWrite(ctx)
	if err != nil {
		return err
	}
	s.check(changed == 0, "it compared the kernel with the manifests and says that it changed %d objects", changed)

	after, now, err := s.rules.state(ctx)
	if err != nil {
		return err
	}
	s.check(before == after, "all that it wrote is what was there before, down to the packet counters")
	if generation != 0 {
		s.check(generation == now, "the kernel's generation of rules is still %d: there was no write at all", now)
	}
	if s.proxied() {
		return s.servesAgain()
	}
	return nil
}

// servesAgain checks that the daemon listens where the rules lead.
func (s *story) servesAgain() error {
	tally, err := s.shell.Spread(tcp(mysqlAddress), connections)
	s.check(allForwarded(tally), "it listens where it listened before: %d connections, none failed", tally.Total)
	return err
}

// firstWrite waits for the daemon's first write to the kernel, and returns how much that changed; -1: there was none.
func (s *story) firstWrite(ctx context.Context) (changed int, err error) {
	_, err = eventually(ctx, func() (bool, error) {
		log, err := s.log()
		changed = written(log)
		return changed >= 0 || !s.daemon.running(), err
	})
	return changed, err
}

// cleanUp stops the daemon, which leaves the rules, and then removes them.
func (s *story) cleanUp(ctx context.Context) error {
	if s.Keep {
		s.say("Not yet: --keep was given, so everything stays up.")
		return nil
	}
	if err := s.daemon.end(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.stopped(); err != nil {
		return err
	}
	s.print("")
	s.command("sluice cleanup")
	if _, err := s.sluice(ctx, "cleanup"); err != nil {
		return err
	}
	left, err := s.rules.leftovers(ctx)
	if err != nil {
		return err
	}
	s.check(left == "", "the kernel of %s has nothing of Sluice any more", nodeName)
	s.quote(left)
	return s.unreachable()
}

// stopped checks what becomes of clients when the daemon has ended in order.
func (s *story) stopped() error {
	if s.proxied() {
		s.say("The daemon stopped, and its rules stayed:")
		return s.refused()
	}
	tally, err := s.shell.Spread(tcp(mysqlAddress), connections)
	s.check(allForwarded(tally), "the daemon stopped, and its rules stayed: %d connections, none failed", tally.Total)
	return err
}

// waitWithDoorsOpen tells how to enter each machine and waits for the end.
func (s *story) waitWithDoorsOpen(ctx context.Context) {
	s.print("", s.paint(bold, "Everything stays up until Ctrl-C. Doors, from another terminal:"), "")
	join := fmt.Sprintf("nsenter -t %d -m", os.Getpid())
	if os.Getuid() == 0 && !ownUserNamespace() {
		join = "sudo " + join
	} else {
		join += " -U --preserve-credentials"
	}
	hosts := append([]string{nodeName, clientName, shellName}, podNames(s.pods)...)
	for _, name := range hosts {
		s.print(fmt.Sprintf("   %-11s %s", name, s.paint(cyan, fmt.Sprintf("%s --net=/proc/%d/fd/%d", join, os.Getpid(), s.lab.Host(name).Namespace().Fd()))))
	}
	s.print("", fmt.Sprintf("   The manifests that the daemon watches: %s", s.folder))
	<-ctx.Done()
	s.print("")
}

func podNames(pods []*pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.name)
	}
	return names
}

// ownUserNamespace reports whether an ordinary user started the program: its root is not the system's.
func ownUserNamespace() bool {
	mapped, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(mapped)), " ") != "0 0 4294967295"
}
