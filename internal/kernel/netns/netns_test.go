package netns_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func TestDoEntersAndLeaves(t *testing.T) {
	nstest.Require(t)
	ns := newNS(t)
	outside := identity(t)
	var inside string
	if err := ns.Do(func() error { inside = identity(t); return nil }); err != nil {
		t.Fatal(err)
	}
	if inside == outside {
		t.Error("Do ran the function in the caller's namespace")
	}
	if again := identity(t); again != outside {
		t.Errorf("the caller's namespace went from %s to %s", outside, again)
	}
}

func TestDoReturnsTheFunctionsError(t *testing.T) {
	nstest.Require(t)
	want := errors.New("no luck")
	if err := newNS(t).Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestNamespacesAreApart(t *testing.T) {
	nstest.Require(t)
	a, b := newNS(t), newNS(t)
	listen := func(ns *netns.NS) net.Listener {
		var l net.Listener
		err := ns.Do(func() (err error) {
			l, err = net.Listen("tcp", "127.0.0.1:8080")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	defer func() { _ = listen(a).Close() }()
	defer func() { _ = listen(b).Close() }()
}

func TestLoopbackIsUp(t *testing.T) {
	nstest.Require(t)
	for name, do := range map[string]func(func() error) error{
		"isolated": func(f func() error) error { return f() },
		"new":      newNS(t).Do,
	} {
		err := do(func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			return c.Close()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCommandRunsInside(t *testing.T) {
	nstest.Require(t)
	ns := newNS(t)
	var want string
	if err := ns.Do(func() error { want = identity(t); return nil }); err != nil {
		t.Fatal(err)
	}
	out, err := ns.Command(context.Background(), "readlink", "/proc/self/ns/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("the program ran in %s, want %s", got, want)
	}
}

func TestCommandTellsFailures(t *testing.T) {
	nstest.Require(t)
	ns := newNS(t)
	if err := ns.Command(context.Background(), "/no/such/program").Run(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := ns.Command(ctx, "sleep", "1000").DieWithParent()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("a program killed by its context ended well")
	}
}

// The test binary itself runs in namespaces of its own, so /run is that of Settle.
func TestRunIsWritable(t *testing.T) {
	nstest.Require(t)
	if err := os.WriteFile("/run/xtables.lock", nil, 0o600); err != nil {
		t.Error(err)
	}
}

func TestOpenNamesThePath(t *testing.T) {
	_, err := netns.Open("/proc/nosuch/ns/net")
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/proc/nosuch/ns/net") {
		t.Errorf("got %v", err)
	}
}

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

func identity(t *testing.T) string {
	t.Helper()
	link, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Error(err)
	}
	return link
}
