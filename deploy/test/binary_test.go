package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The program reads the configuration of each flavour, means that mode by it, and has nothing to warn of.
func TestProgramReadsTheConfiguration(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "sluice")
	build := exec.Command("go", "build", "-o", bin, "./cmd/sluice")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build sluice: %v\n%s", err, out)
	}
	begins := map[string]string{"base": "table inet sluice\n", "iptables": "*nat\n", "unprivileged": "table inet sluice\n"}
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), configKey)
			if err := os.WriteFile(file, []byte(configOf(t, f)), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, complaints bytes.Buffer
			cmd := exec.Command(bin, "render", "--config="+file, "--hostname-override=node1", "--manifests=../../examples/registry.yaml")
			cmd.Stdout, cmd.Stderr = &out, &complaints
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, complaints.String())
			}
			if complaints.Len() > 0 {
				t.Errorf("it says:\n%s", complaints.String())
			}
			if !bytes.Contains(out.Bytes(), []byte(begins[f.name])) {
				t.Errorf("it renders:\n%.300s", out.String())
			}
		})
	}
}
