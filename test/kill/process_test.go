package kill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// restores are the children of a process that are iptables-restore.
func restores(t testing.TB, parent int) (pids []int) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == parent {
			continue
		}
		if s, ok := look(pid); !ok || s.parent != parent || s.state == "Z" {
			continue
		}
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(command), "tables-restore") || strings.Contains(string(command), "-nft-restore") || strings.Contains(string(command), "-legacy-restore") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// process is what proc_pid_stat(5) tells.
type process struct {
	state  string
	parent int
	flags  uint64
}

// look looks at a process; ok is false if there is none.
func look(pid int) (p process, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may hold anything
	words := strings.Fields(rest)
	p.state = words[0]
	p.parent, _ = strconv.Atoi(words[1])
	p.flags, _ = strconv.ParseUint(words[6], 10, 64)
	return p, true
}

// Flags of a process that is on its way out (include/linux/sched.h).
const (
	exiting  = 0x4   // PF_EXITING
	signaled = 0x400 // PF_SIGNALED
)

// doomed reports whether a process is dead, dying, or about to: the kernel sends SIGKILL to the children before it tells
// anyone that the parent has died, but what a child is doing in the kernel it finishes first.
func doomed(t testing.TB, pid int) bool {
	t.Helper()
	for range 3 { // there is a moment between taking the signal and the flags
		p, ok := look(pid)
		if !ok || p.state == "Z" || p.state == "X" || p.flags&(exiting|signaled) != 0 {
			return true
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
		pending := regexp.MustCompile(`(?m)^(?:SigPnd|ShdPnd):\s+([0-9a-f]+)$`).FindAllStringSubmatch(string(status), -1)
		for _, m := range pending {
			if set, _ := strconv.ParseUint(m[1], 16, 64); set&(1<<(syscall.SIGKILL-1)) != 0 {
				return true
			}
		}
		time.Sleep(time.Microsecond)
	}
	return false
}
