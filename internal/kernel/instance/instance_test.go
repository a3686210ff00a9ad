package instance_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/instance"
	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

// holderEnv makes the test binary a program that claims the namespace and stays.
const holderEnv = "SLUICE_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holderEnv) == "" {
		nstest.Main(m)
	}
	_, err := instance.Take()
	if os.Getenv(holderEnv) == withRemains {
		err = errors.Join(err, leaveRemains())
	}
	fmt.Println("took", err)
	time.Sleep(time.Hour)
}

// withRemains is the value of holderEnv for a holder whose child has its socket for a moment longer than itself.
const withRemains = "and leave it to a child"

// leaveRemains starts a program that inherits all sockets, as a process has them that is about to become a program.
func leaveRemains() error {
	child := exec.Command("sleep", "0.3")
	for fd := range 100 {
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasPrefix(name, "socket:") {
			child.ExtraFiles = append(child.ExtraFiles, os.NewFile(uintptr(fd), name))
		}
	}
	return child.Start()
}

func TestSecondIsRefused(t *testing.T) {
	nstest.Require(t)
	first := take(t)
	if _, err := instance.Take(); !errors.Is(err, instance.ErrRunning) {
		t.Errorf("a second one: got %v", err)
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(func() error { return take(t).Close() }); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = take(t).Close()
}

func TestKillLetsGo(t *testing.T) {
	nstest.Require(t)
	for _, how := range []string{"alone", withRemains} {
		t.Run(how, func(t *testing.T) {
			holder := exec.Command("/proc/self/exe")
			holder.Env = append(os.Environ(), holderEnv+"="+how)
			out, err := holder.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := holder.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "took <nil>\n" {
				t.Errorf("the holder says %q, %v", line, err)
			}
			if _, err := instance.Take(); !errors.Is(err, instance.ErrRunning) {
				t.Errorf("while it runs: got %v", err)
			}
			_ = holder.Process.Kill()
			_ = holder.Wait()
			_ = take(t).Close()
		})
	}
}

// TestStrangerCountsForNothing: a name that another user holds, or that nobody listens at, keeps no Sluice from
// working, and still a second one is refused.
func TestStrangerCountsForNothing(t *testing.T) {
	nstest.Require(t)
	for name, hold := range map[string]func(*testing.T) io.Closer{
		"another user": listenAsNobody, "no listener": bindAlone,
	} {
		t.Run(name, func(t *testing.T) {
			stranger := hold(t)
			first := take(t)
			if _, err := instance.Take(); !errors.Is(err, instance.ErrRunning) {
				t.Errorf("a second one: got %v", err)
			}
			if err := errors.Join(first.Close(), stranger.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

const nobody = 65534

// listenAsNobody has one thread be another user's, and ends it.
func listenAsNobody(t *testing.T) io.Closer {
	t.Helper()
	nstest.RequireRoot(t, "in the namespace of an ordinary user there are no other users")
	type result struct {
		net.Listener
		error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good, so that the thread ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
			done <- result{nil, errno}
			return
		}
		l, err := net.Listen("unix", "@sluice")
		done <- result{l, err}
	}()
	r := <-done
	if r.error != nil {
		t.Fatal(r.error)
	}
	return r.Listener
}

// bindAlone takes the name and does not listen.
func bindAlone(t *testing.T) io.Closer {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "@sluice")
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@sluice"}); err != nil {
		t.Fatal(err)
	}
	return file
}

func take(t *testing.T) *instance.Claim {
	t.Helper()
	c, err := instance.Take()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
