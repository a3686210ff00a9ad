package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

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

// setUpMachine has the machine as is asked, as far as it can be.
func (d *daemon) setUpMachine(c config.Host) {
	var texts []string
	for _, p := range d.machine.Apply(settings(c)) {
		texts = append(texts, p.String())
	}
	d.board.read(map[any][]string{machineTopic: texts})
}

// SetUpMachine does the part of the daemon's work that takes more rights than the rest. What cannot be done is an error.
func SetUpMachine(ctx context.Context, in Input, log *slog.Logger) error {
	want := settings(in.Config.Host)
	want.SetOOM = false // the score is a process's own, and this one ends
	var left []string
	for _, p := range hostset.New(log).Apply(want) {
		left = append(left, string(p.Setting)) // why has been logged
	}
	var err error
	if len(left) > 0 {
		err = fmt.Errorf("settings of the machine that are not as asked: %s", strings.Join(left, ", "))
	}
	return errors.Join(err, in.settle(ChooseMode(ctx)).routeLoopback())
}

// routeLoopback lets node ports answer on loopback addresses, if they do in mode iptables.
func (in Input) routeLoopback() error {
	host, err := hostNow()
	if err != nil || in.Config.Mode != config.ModeIPTables {
		return err
	}
	node := plan.Build(in.Config.Plan, host, model.NewSnapshot()).Node
	if !node.NodePorts[model.IPv4].Loopback {
		return nil
	}
	return setRouteLocalnet(true)
}

// WriteConfig writes a configuration to a new file, or over an old one, as kube-proxy writes its own.
func WriteConfig(c config.Config, path string) error {
	text, err := c.YAML()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}
