package sysctl_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func TestSet(t *testing.T) {
	const key = "net.ipv4.ip_forward"
	inNewNamespace(t, func() error {
		if _, err := sysctl.Set(key, "0"); err != nil {
			return err
		}
		for _, wantChanged := range []bool{true, false} {
			changed, err := sysctl.Set(key, "1")
			if err != nil {
				return err
			}
			if changed != wantChanged {
				t.Errorf("changed is %v, want %v", changed, wantChanged)
			}
		}
		if got, err := sysctl.Get(key); got != "1" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		return nil
	})
}

func TestGetInt(t *testing.T) {
	inNewNamespace(t, func() error {
		if _, err := sysctl.Set("net.ipv4.ip_default_ttl", "77"); err != nil {
			return err
		}
		if got, err := sysctl.GetInt("net.ipv4.ip_default_ttl"); got != 77 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		const text = "net.ipv4.tcp_congestion_control"
		if got, err := sysctl.GetInt(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("a text: got %d, %v", got, err)
		}
		return nil
	})
}

func TestErrorsNameTheKey(t *testing.T) {
	for _, key := range []string{"net.ipv4.nosuch", "net.ipv4.conf.eth0/5.rp_filter", "../../etc/passwd"} {
		_, err := sysctl.Get(key)
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %v", key, err)
		}
	}
}

// The tests have a mount namespace of their own, so this does not touch the host.
func TestReadOnly(t *testing.T) {
	inNewNamespace(t, func() error {
		if err := syscall.Mount("/proc/sys", "/proc/sys", "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return err
		}
		defer func() { _ = syscall.Unmount("/proc/sys", syscall.MNT_DETACH) }()
		flags := uintptr(syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY)
		if err := syscall.Mount("", "/proc/sys", "", flags|mountFlags(t), ""); err != nil {
			return err
		}
		_, err := sysctl.Set("net.ipv4.ip_forward", "1")
		if !errors.Is(err, sysctl.ErrReadOnly) || !strings.Contains(err.Error(), "net.ipv4.ip_forward") {
			t.Errorf("got %v", err)
		}
		if changed, err := sysctl.Set("net.ipv4.ip_forward", "0"); changed || err != nil {
			t.Errorf("a value that is right already: %v, %v", changed, err)
		}
		return nil
	})
}

// mountFlags returns the flags of /proc/sys, which an ordinary user may not take away.
func mountFlags(t *testing.T) uintptr {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs("/proc/sys", &s); err != nil {
		t.Fatal(err)
	}
	return uintptr(s.Flags) & (syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_RELATIME)
}

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
