package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolatedEnv tells the program that Isolate started it, and for whom.
const (
	isolatedEnv = "SLUICE_ISOLATED"
	byRoot      = "root"
	byUser      = "user"
)

// Isolated reports whether [Isolate] started this process; if so, it calls [Settle] before anything else.
func Isolated() bool {
	return os.Getenv(isolatedEnv) != ""
}

// Isolate runs this program again, with args, in network and mount namespaces of its own, and returns its exit
// status: 128 and the signal's number where a signal ended it. An ordinary user also gets a user namespace, in which
// it is root. Standard input, output and error are shared, env ("KEY=value") is added to the environment, signals are
// passed on, and the program dies when this process dies.
//
// The error is [ErrForbidden] where the kernel refuses; where it refuses late, the program's own [Settle] says so.
func Isolate(args []string, env ...string) (int, error) {
	cmd := exec.Command(executable(), args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(append(os.Environ(), env...), isolatedEnv+"="+invoker())
	cmd.SysProcAttr = namespaces(os.Geteuid(), os.Getegid())

	// The kernel takes the end of the starting thread for the death of the parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run in namespaces of its own: %w", explain(err))
	}
	ended := make(chan struct{})
	defer close(ended)
	go passOn(signals, cmd.Process, ended)
	return exitStatus(cmd.Wait())
}

// executable returns the path of this program, by which ps then names it, or what stands for it where the file has
// been replaced or removed.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return "/proc/self/exe"
	}
	if _, err := os.Stat(path); err != nil {
		return "/proc/self/exe"
	}
	return path
}

func invoker() string {
	if os.Geteuid() == 0 {
		return byRoot
	}
	return byUser
}

func namespaces(uid, gid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if uid != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
		attr.GidMappingsEnableSetgroups = false
	}
	return attr
}

// passOn sends signals to the program, except those that the terminal has sent to both already.
func passOn(signals <-chan os.Signal, p *os.Process, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if (s == unix.SIGINT || s == unix.SIGQUIT) && inForeground() {
				continue
			}
			_ = p.Signal(s) // it fails only when the program has ended, which Wait reports
		case <-ended:
			return
		}
	}
}

// inForeground reports whether Ctrl-C on the controlling terminal reaches this process's group.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitStatus(err error) (int, error) {
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Settle makes the namespaces that [Isolate] created ready for use: mounts no longer reach the host, /run is empty and
// writable (legacy iptables keeps its lock there), and the loopback is up. It is called once, early, in the program
// that Isolate started.
func Settle() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", explain(err))
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", explain(err))
	}
	return upLoopback()
}
