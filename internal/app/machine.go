package app

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"sluice/internal/config"
	"sluice/internal/hostset"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// settings are what the machine is to be set to.
func settings(c config.Host) hostset.Settings {
	return hostset.Settings{
		OOMScoreAdj: c.OOMScoreAdj, SetOOM: true,
		Conntrack: hostset.Conntrack(c.Conntrack),
	}
}

// machineTopic is what problems of the machine go by.
const machineTopic = "machine"

// setUpMachine has the machine as the configuration asks, as far as it can be.
func (d *daemon) setUpMachine() {
	d.mu.Lock()
	defer d.mu.Unlock()
	var texts []string
	for _, p := range d.machine.Apply(settings(d.Config.Host)) {
		texts = append(texts, p.String())
	}
	d.board.read(map[any][]string{machineTopic: texts})
}

// SetUpMachine does the part of the daemon's work that takes more rights than the rest. What cannot be done is an error.
func SetUpMachine(c config.Config, log *slog.Logger) error {
	var errs []error
	for _, p := range hostset.New(log).Apply(settings(c.Host)) {
		errs = append(errs, errors.New(p.String()))
	}
	host, err := hostNow()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	node := plan.Build(c.Plan, host, model.NewSnapshot()).Node
	if c.Mode != config.ModeNFTables && node.NodePorts[model.IPv4].Loopback {
		errs = append(errs, setRouteLocalnet(true))
	}
	return errors.Join(errs...)
}

// WriteConfig writes a configuration to a new file, or over an old one, as kube-proxy writes its own.
func WriteConfig(c config.Config, path string) error {
	text, err := c.YAML()
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return os.WriteFile(path, text, 0o644)
}
