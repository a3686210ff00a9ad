package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountPoint is a file system that every Linux has.
type mountPoint struct{ kind, dir, options string }

var mountPoints = []mountPoint{
	{"proc", "/proc", ""},
	{"sysfs", "/sys", ""},
	{"devtmpfs", "/dev", ""},
	{"devpts", "/dev/pts", "ptmxmode=666"},
	{"tmpfs", "/dev/shm", "mode=1777"},
	{"tmpfs", "/run", "mode=755"},
	{"tmpfs", "/tmp", "mode=1777"},
	{"cgroup2", "/sys/fs/cgroup", ""},
	{"bpf", "/sys/fs/bpf", ""},
}

func mountAll() error {
	for _, m := range mountPoints {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	return nil
}

var drivers = []string{"virtio_pci", "virtio_console", "virtio_rng"}

// schedulers are those that the kernel, at least to 6.1, cannot safely load by itself: it asks for them with the lock of
// ip_vs held, they wait for the lock of all namespaces, and whoever removes a namespace holds that and waits for the first.
// From then on no namespace can be made or removed.
var schedulers = []string{"ip_vs_lblc", "ip_vs_lblcr"}

// stuck is how many seconds a process may wait within the kernel before that takes it for a fault of its own, and panics.
const stuck = "60"

// setUp loads the drivers of this machine, and gives it a name and a loopback.
func setUp() error {
	if err := modprobe(append(drivers, schedulers...)...); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/kernel/hung_task_timeout_secs", []byte(stuck), 0); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("vm")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	return command("ip", "link", "set", "lo", "up")
}

func modprobe(modules ...string) error {
	if len(modules) == 0 {
		return nil
	}
	return command("modprobe", append([]string{"-a"}, modules...)...)
}

// forget removes a module that nobody has loaded yet, as a kernel that was built without it has none.
func forget(module string) error {
	files, err := filepath.Glob("/usr/lib/modules/*/kernel/*/*/" + module + ".ko*")
	if err == nil && len(files) == 0 {
		err = fs.ErrNotExist
	}
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return fmt.Errorf("forget module %s: %w", module, err)
	}
	return nil
}

func command(name string, args ...string) error {
	cmd := exec.Command("/usr/sbin/"+name, args...)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}
