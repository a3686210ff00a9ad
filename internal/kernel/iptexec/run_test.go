package iptexec_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/testkit/nstest"
)

// restoringEnv makes the test binary a program that waits in Restore for the lock.
const restoringEnv = "SLUICE_TEST_RESTORING"

func TestMain(m *testing.M) {
	if os.Getenv(restoringEnv) == "" {
		nstest.Main(m)
	}
	tools, err := iptexec.Find(context.Background(), iptexec.Legacy)
	fmt.Println("ready", err)
	_ = tools.Restore(context.Background(), iptexec.IPv4, []byte("*nat\nCOMMIT\n"), iptexec.RestoreOptions{Wait: time.Hour})
}

func TestKillLeavesNoRestoreBehind(t *testing.T) {
	nstest.Require(t)
	holdLock(t)
	daemon := exec.Command("/proc/self/exe")
	daemon.Env = append(os.Environ(), restoringEnv+"=1")
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready <nil>\n" {
		t.Fatalf("the daemon says %q, %v", line, err)
	}
	restore, err := unix.PidfdOpen(childOf(daemon.Process.Pid), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(restore) }()
	_ = daemon.Process.Kill()
	_ = daemon.Wait()
	ended := []unix.PollFd{{Fd: int32(restore), Events: unix.POLLIN}}
	for { // a restore that lives on holds the test up until its timeout
		if n, err := unix.Poll(ended, -1); err != unix.EINTR {
			if n != 1 || err != nil {
				t.Errorf("wait for the restore to end: %d, %v", n, err)
			}
			return
		}
	}
}

// childOf waits for a process to have a child, and returns its number.
func childOf(parent int) int {
	for {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
		for _, task := range tasks {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, task.Name()))
			if fields := strings.Fields(string(children)); len(fields) > 0 {
				child, _ := strconv.Atoi(fields[0])
				return child
			}
		}
	}
}

// holdLock holds the lock of the legacy variant until the test ends.
func holdLock(t *testing.T) {
	t.Helper()
	lock, err := os.Create("/run/xtables.lock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}
