// Package cpu counts the processors of this machine.
//
// Invariant: they are those of the machine, whichever of them this process may use.
package cpu

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const path = "/sys/devices/system/cpu/online"

// Online returns how many processors are online. It is at least 1 if there is no error.
func Online() (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("count the processors: %w", err)
	}
	n, err := count(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("count the processors in %s: %w", path, err)
	}
	return n, nil
}

// count reads a list of numbers and ranges, such as "0-3,8".
func count(list string) (n int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		if err != nil {
			return 0, err
		}
		to, err := strconv.ParseUint(last, 10, 16)
		if err != nil {
			return 0, err
		}
		if to < from {
			return 0, fmt.Errorf("range %q ends before it begins", part)
		}
		n += int(to-from) + 1
	}
	return n, nil
}
