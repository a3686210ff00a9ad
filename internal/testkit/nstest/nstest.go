package nstest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"sluice/internal/kernel/netns"
)

// refusedEnv holds why there is no network of their own for the tests.
const refusedEnv = "SLUICE_NSTEST_REFUSED"

// systemFolders are those of the programs that tests call, such as iptables-save, which an ordinary user's PATH lacks.
const systemFolders = ":/usr/local/sbin:/usr/sbin:/sbin"

// Main runs the tests of m in namespaces of their own and exits. Where the system forbids that to an ordinary user it
// runs them where they are, and those that call [Require] are skipped.
func Main(m *testing.M) {
	if netns.Isolated() {
		os.Exit(inside(m))
	}
	status, err := netns.Isolate(os.Args[1:], "PATH="+os.Getenv("PATH")+systemFolders)
	if err == nil {
		os.Exit(status)
	}
	os.Exit(without(m, err))
}

func inside(m *testing.M) int {
	if err := netns.Settle(); err != nil {
		return without(m, err)
	}
	return m.Run()
}

// without runs the tests with no network of their own, because of err.
func without(m *testing.M, err error) int {
	if errors.Is(err, netns.ErrForbidden) {
		err = os.Setenv(refusedEnv, err.Error())
		if err == nil {
			return m.Run()
		}
	}
	fmt.Fprintln(os.Stderr, "nstest:", err)
	return 1
}

// RequireRoot is Require for a test that an ordinary user cannot run even with a network of its own, because of why. It
// skips for ordinary users alone: minimum is root.
func RequireRoot(t testing.TB, why string) {
	t.Helper()
	Require(t)
	if !netns.StartedByRoot() {
		t.Skip("needs root:", why)
	}
}

// Require ends the test unless it has a network of its own. It skips where the system forbids user namespaces to an
// ordinary user, and fails in every other case: minimum is root, or user namespaces for ordinary users.
func Require(t testing.TB) {
	t.Helper()
	reason := os.Getenv(refusedEnv)
	switch {
	case reason != "":
		t.Skip("needs root, or user namespaces for ordinary users:", reason)
	case !netns.Isolated():
		t.Fatal("TestMain of this package does not call nstest.Main")
	}
}
