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
	h, err := ipvs.Open()
	switch {
	case errors.Is(err, ipvs.ErrAbsent):
		Lacks(t, "ip_vs", err)
	case err != nil:
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// Lacks ends the test because this kernel has no such module; err is what it says. The test is skipped, but in the
// virtual machine of make test-vm it fails: minimum is a kernel that has the module.
func Lacks(t testing.TB, module string, err error) {
	t.Helper()
	if os.Getenv(vmEnv) != "" {
		t.Fatalf("this kernel is to have the module %s: %v", module, err)
	}
	t.Skipf("needs a kernel with the module %s, see make test-vm: %v", module, err)
}
