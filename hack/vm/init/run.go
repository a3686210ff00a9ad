package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sluice/hack/vm/guest"
)

// runAll does what the config says and reports it.
func runAll() error {
	config, err := readConfig()
	if err != nil {
		return err
	}
	for _, module := range config.Without {
		if err := forget(module); err != nil {
			return err
		}
	}
	if err := modprobe(config.Modules...); err != nil {
		return err
	}
	port, err := openPort(guest.Port)
	if err != nil {
		return err
	}
	for i, run := range config.Runs {
		if err := report(port, i, run, append(environment(), config.Env...)); err != nil {
			return err
		}
	}
	return port.Close()
}

func readConfig() (config guest.Config, err error) {
	text, err := os.ReadFile(guest.ConfigFile)
	if err != nil {
		return config, err
	}
	return config, json.Unmarshal(text, &config)
}

// openPort finds the virtio serial port of a name.
func openPort(name string) (*os.File, error) {
	files, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(text)) == name {
			return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(file))), os.O_WRONLY, 0)
		}
	}
	return nil, fmt.Errorf("virtio serial port %s: %w", name, fs.ErrNotExist)
}

// report runs number i.
func report(to io.Writer, i int, run guest.Run, env []string) error {
	events := json.NewEncoder(to)
	if err := events.Encode(guest.Event{Run: i}); err != nil {
		return err
	}
	cmd := exec.Command(run.Args[0], run.Args[1:]...)
	cmd.Dir, cmd.Env = run.Dir, env
	out := output{run: i, events: events}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = patience
	status, err := exitStatus(cmd.Run())
	if err != nil {
		_, _ = fmt.Fprintf(out, "%s: %v\n", run.Args[0], err)
	}
	return events.Encode(guest.Event{Run: i, Exit: &status})
}

// patience is how long what a run left behind may hold its output.
const patience = 10 * time.Second

// exitStatus is that of a program that has run; err is why there is none.
func exitStatus(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	}
	return -1, err
}

// output makes events of what a run writes.
type output struct {
	run    int
	events *json.Encoder
}

func (o output) Write(b []byte) (int, error) {
	return len(b), o.events.Encode(guest.Event{Run: o.run, Output: b})
}
