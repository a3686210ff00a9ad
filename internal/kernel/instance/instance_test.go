package instance_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"sluice/internal/kernel/instance"
	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

// holderEnv makes the test binary a program that claims the namespace and stays.
const holderEnv = "SLUICE_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holderEnv) == "" {
		nstest.Main(m)
	}
	_, err := instance.Take()
	fmt.Println("took", err)
	time.Sleep(time.Hour)
}

func TestSecondIsRefused(t *testing.T) {
	nstest.Require(t)
	first := take(t)
	if _, err := instance.Take(); !errors.Is(err, instance.ErrRunning) {
		t.Errorf("a second one: got %v", err)
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(func() error { return take(t).Close() }); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = take(t).Close()
}

func TestKillLetsGo(t *testing.T) {
	nstest.Require(t)
	holder := exec.Command("/proc/self/exe")
	holder.Env = append(os.Environ(), holderEnv+"=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "took <nil>\n" {
		t.Errorf("the holder says %q, %v", line, err)
	}
	if _, err := instance.Take(); !errors.Is(err, instance.ErrRunning) {
		t.Errorf("while it runs: got %v", err)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	_ = take(t).Close()
}

func take(t *testing.T) *instance.Claim {
	t.Helper()
	c, err := instance.Take()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
