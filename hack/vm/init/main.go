// Command init is the first and only program of the machine that hack/vm starts. It mounts what Linux needs, loads
// modules, runs what [guest.Config] says, and powers off.
//
// It is process 1, so that it also waits for every orphan; the runs are started by a second process of the same
// program, which thus is the only one to wait for them.
package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// runner is the name of the second process.
const runner = "runner"

func main() {
	if os.Args[0] == runner {
		if err := runAll(); err != nil {
			fmt.Fprintln(os.Stderr, "init:", err)
			os.Exit(1)
		}
		return
	}
	if err := first(); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err) // the console: the host shows it
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// first sets up the machine, starts the runner and reaps until that ends.
func first() error {
	if err := mountAll(); err != nil {
		return err
	}
	if err := setUp(); err != nil {
		return err
	}
	pid, err := syscall.ForkExec("/init", []string{runner}, &syscall.ProcAttr{
		Env: environment(), Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return fmt.Errorf("start the runner: %w", err)
	}
	for {
		var status unix.WaitStatus
		switch ended, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for the runner: %w", err)
		case ended == pid:
			return nil
		}
	}
}

func environment() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME=/root", "TMPDIR=/tmp", "USER=root", "LC_ALL=C",
		// Tests that need what this kernel has fail here instead of being skipped.
		"SLUICE_VM=1",
	}
}
