package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"
)

// patience bounds a test that would wait for ever.
const patience = time.Minute

// watch loads a file and watches it. The result waits for the next call of notify.
func watch(t *testing.T, file string, args ...string) (first Config, next func() reading) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := NewFlags(set)
	f.Daemon()
	if err := set.Parse(append(args, "--config="+file)); err != nil {
		t.Fatal(err)
	}
	first, _, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	chosen, _ := first.For(ModeIPTables)
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan reading, 16), make(chan error, 1)
	go func() {
		done <- f.Watch(ctx, chosen, func(c Config, warnings []string, err error) { told <- reading{c, warnings, err} })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t)
	})
	return first, func() reading {
		t.Helper()
		select {
		case r := <-told:
			return r
		case <-time.After(patience):
			t.Fatal("nothing was told")
			panic("unreachable")
		}
	}
}

// mount turns a ConfigMap's folder to another version, as the kubelet does.
func mount(t *testing.T, dir, version, text string) {
	t.Helper()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, version), 0o700),
		os.WriteFile(filepath.Join(dir, version, "config.conf"), []byte(text), 0o600),
		os.Symlink(version, filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a ConfigMap comes to say is told once, a fault once, and that it is gone; what says the same is not told.
func TestWatchAConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "..1", header+"clusterCIDR: 10.1.0.0/16\n")
	file := filepath.Join(dir, "config.conf")
	if err := os.Symlink("..data/config.conf", file); err != nil {
		t.Fatal(err)
	}
	_, next := watch(t, file, "--oom-score-adj=-5")

	mount(t, dir, "..2", header+"# said otherwise\nclusterCIDR: \"10.1.0.0/16\"\n")
	mount(t, dir, "..3", header+"clusterCIDR: 10.2.0.0/16\n")
	r := next()
	if r.err != nil || !slices.Equal(r.config.Plan.ClusterCIDRs, prefixes("10.2.0.0/16")) || r.config.Host.OOMScoreAdj != -5 {
		t.Fatalf("told %+v", r)
	}
	mount(t, dir, "..4", header+"clusterCIDR: nonsense\n")
	r = next()
	if r.err == nil || !strings.Contains(r.err.Error(), `config.conf:3: clusterCIDR: "nonsense"`) {
		t.Fatalf("error %v", r.err)
	}
	if !slices.Equal(r.config.Plan.ClusterCIDRs, prefixes("10.2.0.0/16")) {
		t.Errorf("with the error comes %v, want what is in force", r.config.Plan.ClusterCIDRs)
	}
	mount(t, dir, "..5", header+"clusterCIDR: 10.2.0.0/16\n")
	if r = next(); r.err != nil {
		t.Fatalf("the fault is gone, but told is %v", r.err)
	}
	mount(t, dir, "..6", header+"clusterCIDR: 10.2.0.0/16\nclusterCidr: 10.3.0.0/16\n")
	if r = next(); r.err != nil || len(r.warnings) != 1 || !strings.Contains(r.warnings[0], "is clusterCIDR meant?") {
		t.Fatalf("told %+v, want one warning", r)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if r = next(); !errors.Is(r.err, fs.ErrNotExist) {
		t.Errorf("error %v, want that there is no file", r.err)
	}
}

// Without a file there is nothing to watch.
func TestWatchWithoutAFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := NewFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	if err := f.Watch(ctx, Config{}, func(Config, []string, error) { t.Error("told") }); err != nil {
		t.Error(err)
	}
}

func TestRestart(t *testing.T) {
	old, _, err := load(t, "", "--kube-api-qps=5", "--v=2")
	if err != nil {
		t.Fatal(err)
	}
	new, _, err := load(t, header+"mode: iptables\nhostnameOverride: node-b\nclientConnection: {kubeconfig: /b, qps: 7}\noomScoreAdj: 0\n", "--master=https://192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--master: the connection to the API server is made once",
		"clientConnection.kubeconfig: the connection to the API server is made once",
		"clientConnection.qps: the connection to the API server is made once",
		"hostnameOverride: all that is watched of the API depends on the node",
	}
	if diff := cmp.Diff(want, Restart(old, new)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if told := Restart(new, new); len(told) > 0 {
		t.Errorf("of nothing: %q", told)
	}
}

// A pipe gives what it has once, and whoever opened it again would wait for ever; so would the end of the daemon.
func TestWatchNoPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte(header+"clusterCIDR: 10.1.0.0/16\n"), 0o600) }() // Load fails if it does
	first, _ := watch(t, pipe)                                                                 // which ends with the test
	if !slices.Equal(first.Plan.ClusterCIDRs, prefixes("10.1.0.0/16")) {
		t.Errorf("read %v", first.Plan.ClusterCIDRs)
	}
}

func TestWatchAFileThatBecomesAPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.conf")
	if err := os.WriteFile(file, []byte(header+"clusterCIDR: 10.1.0.0/16\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, next := watch(t, file)
	if err := errors.Join(syscall.Mkfifo(file+".new", 0o600), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
	if r := next(); r.err == nil || !slices.Equal(r.config.Plan.ClusterCIDRs, prefixes("10.1.0.0/16")) {
		t.Errorf("told %+v, want an error and what is in force", r)
	}
}
