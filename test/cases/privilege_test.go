package cases

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

// In mode nftables the daemon wants a user who may administer networks and no more, and no other program.
func TestNetAdminIsAllItNeeds(t *testing.T) {
	nstest.RequireRoot(t, "to become a user who keeps one capability")
	st := open(t, "two-ports-of-one-address")
	st.objects(1)
	dir := filepath.Dir(st.manifest)
	if err := os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o711); err != nil { // which package testing keeps to root
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := daemon.Command(st.lab.Node(), append([]string{"run", "--mode=nftables", "--manifests", dir}, scenario.Reference()...)...)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	cmd.Env = append(cmd.Env, "PATH=")
	st.daemon = daemon.StartCommand(t, cmd)
	st.flows(1)
	st.quiet()
}
