package hostset_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"sluice/internal/hostset"
	"sluice/internal/kernel/netns"
	"sluice/internal/kernel/oom"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

const netfilter = "/proc/sys/net/netfilter"

var asked = hostset.Settings{Conntrack: hostset.Conntrack{
	TCPEstablished: 1234 * time.Second, TCPCloseWait: 567 * time.Second, UDP: 12 * time.Second, UDPStream: 89 * time.Second, BeLiberal: true,
}}

// The times belong to the network namespace; they are written once, and right from then on.
func TestApplyInANamespace(t *testing.T) {
	inNewNamespace(t, func() error {
		if problems := apply(asked); len(problems) != 0 {
			t.Error(problems)
		}
		now := hostset.Read()
		for s, want := range map[hostset.Setting]int{
			hostset.TCPEstablished: 1234, hostset.TCPCloseWait: 567, hostset.UDP: 12, hostset.UDPStream: 89, hostset.BeLiberal: 1,
		} {
			if got := now.Values[s]; got.Value != want || got.Err != nil {
				t.Errorf("%s is %v, want %d", s, got, want)
			}
		}
		if steps, problems := hostset.Plan(asked, now); len(steps)+len(problems) != 0 {
			t.Errorf("still to do: %v %v", steps, problems)
		}
		return nil
	})
}

// The limit is the machine's: another network namespace may not change it, which is a matter only if it is too low.
func TestLimitOfTheMachine(t *testing.T) {
	inNewNamespace(t, func() error {
		now := hostset.Read().Values[hostset.MaxConnections]
		if now.Err != nil || now.Value < 1 {
			return fmt.Errorf("this machine has no limit of tracked connections: %v", now)
		}
		if problems := apply(limit(now.Value)); len(problems) != 0 {
			t.Errorf("enough, and yet %v", problems)
		}
		problems := apply(limit(now.Value + 1))
		if len(problems) == 0 || problems[0].Setting != hostset.MaxConnections || !errors.Is(problems[0].Err, os.ErrPermission) {
			t.Errorf("too low: got %v", problems)
		}
		return nil
	})
}

// A read-only /proc/sys is no matter where all is right, and told for each value where not.
func TestReadOnly(t *testing.T) {
	inNewNamespace(t, func() error {
		if _, err := sysctl.Set(string(hostset.UDP), "12"); err != nil {
			return err
		}
		undo, err := mountReadOnly("/proc/sys")
		if err != nil {
			return err
		}
		defer undo()
		right := hostset.Settings{Conntrack: hostset.Conntrack{UDP: 12 * time.Second}}
		if problems := apply(right); len(problems) != 0 {
			t.Errorf("all is right, and yet %v", problems)
		}
		problems := apply(asked)
		if len(problems) != 4 {
			t.Errorf("got %v", problems)
		}
		for _, p := range problems {
			if !errors.Is(p.Err, sysctl.ErrReadOnly) || p.Waits() {
				t.Errorf("got %v", p)
			}
		}
		return nil
	})
}

// Without connection tracking the keys are not there; once they are, they are set.
func TestKeysAbsent(t *testing.T) {
	inNewNamespace(t, func() error {
		if err := syscall.Mount("tmpfs", netfilter, "tmpfs", 0, ""); err != nil {
			return err
		}
		problems := apply(asked)
		if err := syscall.Unmount(netfilter, syscall.MNT_DETACH); err != nil {
			return err
		}
		if len(problems) != 5 {
			t.Errorf("got %v", problems)
		}
		for _, p := range problems {
			if !p.Waits() {
				t.Errorf("got %v", p)
			}
		}
		if problems := apply(asked); len(problems) != 0 {
			t.Errorf("once they are there: %v", problems)
		}
		return nil
	})
}

// An ordinary user may read the settings, and change none.
func TestOrdinaryUser(t *testing.T) {
	nstest.RequireRoot(t, "to become another user, whom an ordinary user's namespace does not know")
	inNewNamespace(t, func() error {
		const nobody = 65534
		if err := setEffectiveUser(nobody); err != nil {
			return err
		}
		problems := apply(asked)
		if err := setEffectiveUser(0); err != nil {
			return err
		}
		if len(problems) != 5 {
			t.Errorf("got %v", problems)
		}
		for _, p := range problems {
			if !errors.Is(p.Err, os.ErrPermission) || p.Waits() {
				t.Errorf("got %v", p)
			}
		}
		return nil
	})
}

func TestScore(t *testing.T) {
	was, err := oom.Score()
	if err != nil {
		t.Fatal(err)
	}
	for _, score := range []int{900, was} {
		problems := apply(hostset.Settings{OOMScoreAdj: score, SetOOM: true})
		if got, err := oom.Score(); len(problems) != 0 || got != score || err != nil {
			t.Errorf("got %d, %v, %v; want %d", got, err, problems, score)
		}
	}
}

func apply(s hostset.Settings) []hostset.Problem {
	return hostset.New(slog.New(slog.DiscardHandler)).Apply(s)
}

// limit asks for so many connections at least.
func limit(n int) hostset.Settings {
	return hostset.Settings{Conntrack: hostset.Conntrack{MaxPerCore: 1, Min: n}}
}

// mountReadOnly makes a folder of /proc read-only in the tests' own mount namespace, until undo.
func mountReadOnly(dir string) (undo func(), err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return nil, err
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return nil, err
	}
	// An ordinary user may not take the flags away that are there.
	flags := uintptr(s.Flags) & (syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_RELATIME)
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|flags, ""); err != nil {
		return nil, errors.Join(err, syscall.Unmount(dir, syscall.MNT_DETACH))
	}
	return func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }, nil
}

// setEffectiveUser makes the calling thread alone another user's, and with it takes or gives back the rights of root.
func setEffectiveUser(uid uintptr) error {
	const same = ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, same, uid, same); errno != 0 {
		return fmt.Errorf("become user %d: %w", uid, errno)
	}
	return nil
}

// inNewNamespace runs f on a thread of its own.
func inNewNamespace(t *testing.T, f func() error) {
	t.Helper()
	nstest.Require(t)
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}
