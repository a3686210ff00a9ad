package churn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"

	"sluice/internal/kernel/netns"
	"sluice/internal/lab"
)

// asEngine in the environment makes the test program be the process that writes, with a Config in JSON.
const asEngine = "SLUICE_CHURN_ENGINE"

// engine is the process that writes as its parent sees it.
type engine struct {
	testing.TB
	cmd *netns.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	log bytes.Buffer
}

// report is what it says when all is written.
type report struct {
	CPU    time.Duration
	Writes int
}

// start runs it on a node until all Services are written.
func start(tb testing.TB, node *lab.Host, c Config) *engine {
	tb.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	e := &engine{TB: tb, cmd: node.Command(context.Background(), "/proc/self/exe")}
	e.cmd.Env = append(os.Environ(), asEngine+"="+string(text))
	e.cmd.Stderr = &e.log
	in, err := e.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	e.in, e.out = in, bufio.NewScanner(out)
	if err := e.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	e.hear()
	return e
}

// hear waits for the process to say how far it is.
func (e *engine) hear() (r report) {
	e.Helper()
	if !e.out.Scan() {
		_ = e.cmd.Wait() // it has said why on its log
		e.Fatalf("the process that writes has ended:\n%s", &e.log)
	}
	if err := json.Unmarshal(e.out.Bytes(), &r); err != nil {
		e.Fatal(err)
	}
	return r
}

// change has it make all changes, and waits until they are written.
func (e *engine) change() report {
	e.Helper()
	if _, err := io.WriteString(e.in, "\n"); err != nil {
		e.Fatal(err)
	}
	return e.hear()
}

// end ends it.
func (e *engine) end() {
	e.Helper()
	if err := e.in.Close(); err != nil {
		e.Error(err)
	}
	if err := e.cmd.Wait(); err != nil {
		e.Errorf("%v\n%s", err, &e.log)
	}
}
