package dropin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/test/cluster"
)

// container is a process as a container runtime starts it on the network of the node.
type container struct {
	// Root is an empty folder, the mount point of the container's root. Nothing is in the root but Mounts, the program, and
	// /proc, /sys and /dev.
	Root string
	// Program is the file that the image has as Args[0], and as kube-proxy beside it.
	Program string
	Args    []string
	Env     []string
	Mounts  []mount
	// Capabilities are the numbers of those that the process may have; nil: it is privileged, and has all.
	Capabilities []int
	// ReadOnly is the root. /proc/sys and /sys are so if the container is not privileged.
	ReadOnly bool
}

// mount is a file or folder of the node's that the container sees.
type mount struct {
	From, At string
	ReadOnly bool
}

// containerEnv has the container, in the environment of the process that becomes it.
const containerEnv = "SLUICE_TEST_CONTAINER"

// start runs the container on a node until the test ends. It is this test program that makes what a container runtime
// would, and then becomes the container's process.
func (o container) start(t *testing.T, c *cluster.Cluster, node string) *cluster.Proxy {
	t.Helper()
	o.Root = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return c.StartAs(t, node, filepath.Base(o.Args[0])+"-"+node+"-"+strings.ReplaceAll(t.Name(), "/", "-"), func(sluice string) *netns.Cmd {
		o.Program = sluice
		spec, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		cmd := c.Node(t, node).Program(self)
		cmd.Env = append(cmd.Env, containerEnv+"="+string(spec))
		return cmd
	})
}

// enter makes this process, which has mounts of its own, the container's.
func enter(spec string) {
	runtime.LockOSThread() // capabilities are a thread's
	var o container
	err := json.Unmarshal([]byte(spec), &o)
	if err == nil {
		err = o.exec()
	}
	fmt.Fprintln(os.Stderr, "container:", err)
	os.Exit(125)
}

func (o container) exec() error {
	if err := o.mount(); err != nil {
		return err
	}
	if err := errors.Join(syscall.Chroot(o.Root), syscall.Chdir("/")); err != nil {
		return err
	}
	if o.Capabilities != nil {
		if err := keep(o.Capabilities); err != nil {
			return err
		}
	}
	return syscall.Exec(o.Args[0], o.Args, o.Env)
}

// mount makes the tree of files.
func (o container) mount() error {
	if err := syscall.Mount("tmpfs", o.Root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	mounts := append([]mount{
		{From: "/proc", At: "/proc"},
		{From: "/sys", At: "/sys", ReadOnly: o.Capabilities != nil},
		{From: "/dev", At: "/dev"},
		{From: o.Program, At: "/usr/local/bin/sluice", ReadOnly: true},
	}, o.Mounts...)
	if o.Capabilities != nil {
		mounts = append(mounts, mount{From: "/proc/sys", At: "/proc/sys", ReadOnly: true})
	}
	for _, m := range mounts {
		if err := m.in(o.Root); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.From, m.At, err)
		}
	}
	if err := os.Symlink("sluice", filepath.Join(o.Root, "/usr/local/bin/kube-proxy")); err != nil {
		return err
	}
	if !o.ReadOnly {
		return nil
	}
	return syscall.Mount("", o.Root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}

func (m mount) in(root string) error {
	at := filepath.Join(root, m.At)
	is, err := os.Stat(m.From)
	if err != nil {
		return err
	}
	if is.IsDir() {
		err = os.MkdirAll(at, 0o755)
	} else {
		err = errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o644))
	}
	if err != nil {
		return err
	}
	if err := syscall.Mount(m.From, at, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil || !m.ReadOnly {
		return err
	}
	return syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}

// Options of prctl(2).
const (
	prCapBSetDrop   = 24
	prSetNoNewPrivs = 38
)

// keep takes all other capabilities from what this thread executes, for good: root has those of the bounding set.
func keep(capabilities []int) error {
	kept := map[int]bool{}
	for _, c := range capabilities {
		kept[c] = true
	}
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return err
	}
	last, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	for c := range last + 1 {
		if kept[c] {
			continue
		}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prCapBSetDrop, uintptr(c), 0); errno != 0 {
			return fmt.Errorf("drop capability %d: %w", c, errno)
		}
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no new privileges: %w", errno)
	}
	return nil
}
