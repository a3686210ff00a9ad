package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Kubectl runs kubectl with args as cluster administrator, with stdin as its input, and returns what it prints. It is
// fatal if it fails.
func (c *Cluster) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := c.TryKubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl is Kubectl that may fail; its output then says why.
func (c *Cluster) TryKubectl(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := c.host.Command(ctx(), program(t, "kubectl"), append([]string{"--kubeconfig=" + c.file("admin.kubeconfig")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.Folder) // its caches
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Apply is `kubectl apply` of YAML.
func (c *Cluster) Apply(t testing.TB, yaml string) string {
	t.Helper()
	return c.Kubectl(t, yaml, "apply", "-f", "-")
}

// Shell runs a script as a cluster administrator would, with kubectl on the path, and returns what it prints. It is fatal
// if it fails.
func (c *Cluster) Shell(t testing.TB, script string) string {
	t.Helper()
	cmd := c.host.Command(ctx(), "sh", "-euc", script)
	path := "PATH=" + filepath.Dir(program(t, "kubectl")) + ":" + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "HOME="+c.Folder, "KUBECONFIG="+c.file("admin.kubeconfig"), path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}
