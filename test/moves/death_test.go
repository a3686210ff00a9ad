package moves

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/config"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/scenario"
)

// nowhere is an API server that never answers, so that a daemon that asks it has no rules to write.
const nowhere = `
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody}]
current-context: nowhere
`

// A daemon is killed that has taken another one's place and sockets, before its rules stand: the other goes on, and clients
// have waited.
func TestSuccessorIsKilled(t *testing.T) {
	st := open(t)
	d := st.start("--mode", config.ModeUserspace)
	st.waitFor(config.ModeUserspace)
	st.begin()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	st.must(os.WriteFile(file, []byte(nowhere), 0o600))
	for _, pause := range []time.Duration{0, 0, time.Second} { // at once, or when clients wait
		args := slices.Concat(scenario.Reference(), []string{"--kubeconfig", file, "--mode", config.ModeUserspace, "--take-over"})
		next := daemon.Start(t, st.lab.Node(), args...)
		st.eventually(func() error {
			if !strings.Contains(next.Log(), "rules lead to the proxy") {
				return errMode
			}
			return nil
		})
		time.Sleep(pause)
		next.Kill()
		st.waitFor(config.ModeUserspace)
		st.after("a daemon that was killed")
	}
	st.end()
	st.complain(d)
}
