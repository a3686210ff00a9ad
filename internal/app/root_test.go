package app

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/testkit/nstest"
)

// withoutRights calls f on a thread that may change nothing.
func withoutRights(t *testing.T, f func()) {
	t.Helper()
	nstest.Require(t)
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends without its rights
		none := [2]unix.CapUserData{}
		err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
		if err == nil {
			f()
		}
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// An ordinary user learns in one line what is missing, and nothing wrong about the kernel.
func TestOrdinaryUsersAreToldWhatIsMissing(t *testing.T) {
	q, err := ParseQuestion("10.244.1.9", "10.96.0.10:53", "", "")
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Config: flags(t), Messages: io.Discard}
	verbs := map[string]func(context.Context) error{
		"run":     Daemon{Input: in}.Run,
		"cleanup": func(ctx context.Context) error { return Cleanup(ctx, CleanupOptions{}, io.Discard) },
		"diff":    func(ctx context.Context) error { _, err := Diff(ctx, in, DiffOptions{}, io.Discard); return err },
		"trace --live": func(ctx context.Context) error {
			_, err := Trace(ctx, in, q, TraceOptions{Live: true}, io.Discard)
			return err
		},
	}
	for verb, f := range verbs {
		withoutRights(t, func() { err = f(t.Context()) })
		if !errors.Is(err, os.ErrPermission) || errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", verb, err)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, verb) || !strings.Contains(text, "needs root (CAP_NET_ADMIN): ") || strings.Contains(text, "\n") {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// Rules for a node that no manifest has are made, and it is told.
func TestLoadTellsOfAMissingNode(t *testing.T) {
	for node, wanted := range map[string]bool{"node-a": false, "node-b": true} {
		var messages strings.Builder
		in := Input{Manifests: []string{"-"}, Config: flags(t, "--node="+node), Messages: &messages, Stdin: strings.NewReader(
			"{apiVersion: v1, kind: Node, metadata: {name: node-a}}")}
		if _, err := in.load(); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(messages.String(), "warning: Node node-b: there is no such Node"); told != wanted {
			t.Errorf("of %s it says %q", node, &messages)
		}
	}
}
