package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What Main tells the tests, which run in a process of their own.
const (
	// folderEnv is the folder of the programs.
	folderEnv = "SLUICE_CLUSTER_PROGRAMS"
	// repositoryEnv is the folder of the repository.
	repositoryEnv = "SLUICE_CLUSTER_REPOSITORY"
	// brokenEnv is why there is no sluice in it.
	brokenEnv = "SLUICE_CLUSTER_BROKEN"
)

// programs are those of the cluster, by their packages, which go.mod names as tools.
func programs() map[string]string {
	return map[string]string{
		"etcd":                    "go.etcd.io/etcd/server/v3",
		"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
		"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
		"kube-proxy":              "k8s.io/kubernetes/cmd/kube-proxy",
		"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
	}
}

// build makes what is missing of the programs, once for every version of them, and sluice each time. A sluice that does
// not compile is told by the tests that need it.
func build() error {
	module, err := goTool("env", "GOMOD")
	if err != nil {
		return err
	}
	folder, err := programFolder(filepath.Join(filepath.Dir(module), "go.sum"))
	if err != nil {
		return err
	}
	for name, pkg := range programs() {
		if err := buildOnce(filepath.Join(folder, name), pkg); err != nil {
			return err
		}
	}
	root, err := goTool("list", "-m", "-f", "{{.Dir}}", "sluice")
	if err != nil {
		return err
	}
	err = errors.Join(os.Setenv(folderEnv, folder), os.Setenv(repositoryEnv, root))
	if broken := buildSluice(root, filepath.Join(folder, "sluice")); broken != nil {
		err = errors.Join(err, os.Setenv(brokenEnv, broken.Error()))
	}
	return err
}

// programFolder is the cache of the versions that a go.sum stands for.
func programFolder(sum string) (string, error) {
	text, err := os.ReadFile(sum)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "sluice-test-cluster", fmt.Sprintf("%.8x", sha256.Sum256(text)))
	return folder, os.MkdirAll(folder, 0o755)
}

func buildOnce(path, pkg string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	start := time.Now()
	fmt.Fprintf(os.Stderr, "cluster: building %s, once; this takes a minute or more\n", pkg)
	if _, err := goTool("build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "cluster: built %s in %s\n", path, time.Since(start).Round(time.Second))
	return nil
}

func buildSluice(root, path string) error {
	_, err := goTool("-C", root, "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/sluice")
	return err
}

// goTool runs go and returns what it says, on one line.
func goTool(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// program is the path of one of the programs.
func program(t testing.TB, name string) string {
	t.Helper()
	if reason := os.Getenv(brokenEnv); name == "sluice" && reason != "" {
		t.Fatal(reason)
	}
	return filepath.Join(fromMain(t, folderEnv), name)
}

// repository is the folder of the repository that the tests are of.
func repository(t testing.TB) string { t.Helper(); return fromMain(t, repositoryEnv) }

// fromMain is what Main has found out.
func fromMain(t testing.TB, key string) string {
	t.Helper()
	value := os.Getenv(key)
	if value == "" {
		t.Fatal("TestMain of this package does not call cluster.Main")
	}
	return value
}
