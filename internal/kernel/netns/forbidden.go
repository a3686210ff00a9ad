package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
)

// ErrForbidden occurs when the system does not let this user create the namespaces that [New] and [Isolate] need.
// The error says which kernel setting forbids it, where one does, and which command works.
var ErrForbidden = errors.New("this system does not let an ordinary user create user namespaces")

// knob is a kernel setting that takes user namespaces away from ordinary users when it has the value forbids.
type knob struct {
	key     string // as sysctl writes it
	forbids string
	allow   string // value that allows them again
}

func knobs() []knob {
	return []knob{
		// Ubuntu 23.10 and later: the namespace is created, but its root has no capability in it.
		{key: "kernel.apparmor_restrict_unprivileged_userns", forbids: "1", allow: "0"},
		// Debian up to 10, and kernels with Debian's patch.
		{key: "kernel.unprivileged_userns_clone", forbids: "0", allow: "1"},
		// RHEL 7, and hardened systems of any kind.
		{key: "user.max_user_namespaces", forbids: "0", allow: "15000"},
	}
}

// explain turns a refusal by the kernel into [ErrForbidden] with its reason; other errors pass unchanged.
func explain(err error) error {
	return explainFrom("/proc/sys", err)
}

func explainFrom(procSys string, err error) error {
	if !refused(err) {
		return err
	}
	if StartedByRoot() {
		return fmt.Errorf("%w (root lacks CAP_SYS_ADMIN here; is this a container?)", err)
	}
	return fmt.Errorf("%w: %s; run it as root instead: %s (%w)", ErrForbidden, reason(procSys), asRoot(os.Args, packagePath()), err)
}

// asRoot is the command that runs args as root. What "go run" built is removed when it ends, and root's path often lacks
// Go, so that a program of pkg is built first.
func asRoot(args []string, pkg string) string {
	program := args[0]
	build := ""
	if strings.Contains(program, "/go-build") && pkg != "" {
		program = "bin/" + filepath.Base(program)
		build = "go build -o " + program + " " + pkg + " && "
	}
	return build + "sudo " + strings.Join(append([]string{program}, args[1:]...), " ")
}

// packagePath is the import path of this program's main package; empty if that is not known.
func packagePath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Path
}

// StartedByRoot reports whether root started this program. An ordinary user whom [Isolate] has made root since has less
// power: some files of the kernel and large netlink messages stay out of reach.
func StartedByRoot() bool {
	if by := os.Getenv(isolatedEnv); by != "" {
		return by == byRoot
	}
	return os.Geteuid() == 0
}

func refused(err error) bool {
	for _, no := range []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func reason(procSys string) string {
	for _, k := range knobs() {
		path := filepath.Join(procSys, strings.ReplaceAll(k.key, ".", "/"))
		value, err := os.ReadFile(path)
		if err == nil && strings.TrimSpace(string(value)) == k.forbids {
			return fmt.Sprintf("the kernel setting %s is %s (an administrator may set it to %s)", k.key, k.forbids, k.allow)
		}
	}
	return "no known kernel setting says so; a container's seccomp profile or a security module may forbid it"
}
