package splice

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFiles is how many files this process may have open. Go has raised the soft limit to the hard one when the program
// began, so there is nothing more to be had without a right.
func OpenFiles() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, os.NewSyscallError("getrlimit RLIMIT_NOFILE", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}
