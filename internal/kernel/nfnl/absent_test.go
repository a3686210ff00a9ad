package nfnl_test

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/testkit/nstest"
)

// Who may not change rules is told so, in the kernel's words; the kernel has nf_tables all the same.
func TestForbidden(t *testing.T) {
	nstest.Require(t)
	if err := nfnl.Forbidden(); err != nil {
		t.Errorf("as root: %v", err)
	}
	var err, dropped error
	absent := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends without its rights
		none := [2]unix.CapUserData{}
		dropped = unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
		err, absent = nfnl.Forbidden(), nfnl.Absent()
	}()
	<-done
	if dropped != nil {
		t.Fatal(dropped)
	}
	if !errors.Is(err, os.ErrPermission) || absent {
		t.Errorf("without rights: %v, absent %t", err, absent)
	}
}
