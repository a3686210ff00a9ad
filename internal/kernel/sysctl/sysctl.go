package sysctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrReadOnly occurs when a setting has to be changed and /proc/sys is mounted read-only, as in most containers.
var ErrReadOnly = errors.New("/proc/sys is read-only here")

const root = "/proc/sys"

// Get returns the value of a setting, without white space around it. The key is as sysctl(8) writes it, such as
// "net.ipv4.ip_forward"; a dot inside a name, as in a VLAN's, is written as a slash: "net.ipv4.conf.eth0/5.rp_filter".
func Get(key string) (string, error) {
	value, err := os.ReadFile(path(key))
	if err != nil {
		return "", fmt.Errorf("read kernel setting %s: %w", key, reason(err))
	}
	return strings.TrimSpace(string(value)), nil
}

// GetInt is Get for a setting that is a number.
func GetInt(key string) (int, error) {
	text, err := Get(key)
	if err != nil {
		return 0, err
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("read kernel setting %s: %w", key, err)
	}
	return value, nil
}

// Set gives a setting a value, unless it has it, and reports whether it wrote.
func Set(key, value string) (changed bool, err error) {
	old, err := Get(key)
	if err != nil || old == value {
		return false, err
	}
	if err := os.WriteFile(path(key), []byte(value), 0o600); err != nil {
		return false, fmt.Errorf("set kernel setting %s from %s to %s: %w", key, old, value, reason(err))
	}
	return true, nil
}

func path(key string) string {
	swap := strings.NewReplacer(".", "/", "/", ".")
	return filepath.Join(root, filepath.Clean("/"+swap.Replace(key)))
}

// reason strips the path, which the key tells, and names a read-only mount.
func reason(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		err = at.Err
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}
