package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used, with the programs that it started.
type Usage struct {
	// CPU is the time of the process and of its children that have ended, in steps of 10 ms.
	CPU time.Duration
	// RSS and Children are the bytes of memory of the process and of the children that run now.
	RSS, Children int64
	// Peak is the largest RSS of the process so far, in bytes.
	Peak int64
}

// tick is the unit of times in /proc, which is the same on every machine that Go runs Linux on.
const tick = 10 * time.Millisecond

// Usage reads what the running process has used since its start.
func (p *Process) Usage() (Usage, error) {
	pid := p.Pid()
	if pid == 0 {
		return Usage{}, fmt.Errorf("%s does not run", p.Name)
	}
	u, err := usage(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.Name, err)
	}
	u.Children, err = childMemory(pid)
	return u, err
}

func usage(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may contain anything
	fields := strings.Fields(rest)
	for _, f := range fields[11:15] { // utime, stime, and those of children
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return Usage{}, err
		}
		u.CPU += time.Duration(n) * tick
	}
	u.RSS, u.Peak, err = memory(pid)
	return u, err
}

// memory returns VmRSS and VmHWM in bytes; 0 for a process that has ended.
func memory(pid int) (rss, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "VmRSS:" && f[0] != "VmHWM:" {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		if f[0] == "VmRSS:" {
			rss = n << 10
		} else {
			peak = n << 10
		}
	}
	return rss, peak, nil
}

// childMemory is the memory of all that a process started, and they in turn.
func childMemory(pid int) (sum int64, err error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for f := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(f)
			if err != nil {
				return 0, err
			}
			if sameProgram(pid, child) {
				continue // between clone and exec its memory is its parent's
			}
			if rss, _, err := memory(child); err == nil { // else it has ended
				sum += rss
			}
			further, err := childMemory(child)
			if err != nil {
				return 0, err
			}
			sum += further
		}
	}
	return sum, nil
}

// sameProgram reports whether two processes run the same file; not if either has ended.
func sameProgram(a, b int) bool {
	of := func(pid int) string {
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			return ""
		}
		return path
	}
	return of(a) != "" && of(a) == of(b)
}
