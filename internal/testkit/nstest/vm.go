package nstest

import (
	"errors"
	"os"
	"testing"

	"sluice/internal/kernel/ipvs"
)

// vmEnv is set in the virtual machine of hack/vm, whose kernel has what [Lacks] is about.
const vmEnv = "SLUICE_VM"

// RequireIPVS is Require for a test of virtual servers, which may need interfaces of the kind dummy, too: minimum is a
// kernel with the modules ip_vs and dummy, as make test-vm has it.
func RequireIPVS(t testing.TB) {
	t.Helper()
	Require(t)
	if err := openIPVS(t); err != nil {
		Lacks(t, "ip_vs", err)
	}
}

// HasIPVS reports whether a test can go through mode ipvs, too. Where RequireIPVS would fail, so does this.
func HasIPVS(t testing.TB) bool {
	t.Helper()
	Require(t)
	err := openIPVS(t)
	if err != nil && inVM() {
		Lacks(t, "ip_vs", err)
	}
	return err == nil
}

// openIPVS has the kernel load ip_vs; the error is [ipvs.ErrAbsent].
func openIPVS(t testing.TB) error {
	t.Helper()
	h, err := ipvs.Open()
	if errors.Is(err, ipvs.ErrAbsent) {
		return err
	}
	if err != nil {
		t.Fatal(err)
	}
	return h.Close()
}

func inVM() bool { return os.Getenv(vmEnv) != "" }

// Lacks ends the test because this kernel has no such module; err is what it says. The test is skipped, but in the
// virtual machine of make test-vm it fails: minimum is a kernel that has the module.
func Lacks(t testing.TB, module string, err error) {
	t.Helper()
	if inVM() {
		t.Fatalf("this kernel is to have the module %s: %v", module, err)
	}
	t.Skipf("needs a kernel with the module %s, see make test-vm: %v", module, err)
}
