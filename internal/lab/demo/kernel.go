package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"sluice/internal/kernel/iptexec"
)

// allTables are those that any mode of a Service proxy writes with iptables.
func allTables() []string { return []string{"mangle", "nat", "filter"} }

// save is what iptables-save says of tables of the node, IPv4, with packet counters.
func (s *story) save(ctx context.Context, tables ...string) (text string, err error) {
	err = s.node.Do(func() error {
		saved, err := s.tools.Save(ctx, iptexec.IPv4, tables...)
		text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(saved), "") // the time of day
		return err
	})
	return text, err
}

// rules is the same without counters.
func (s *story) rules(ctx context.Context, tables ...string) (string, error) {
	text, err := s.save(ctx, tables...)
	return regexp.MustCompile(`(?m)^\[\d+:\d+\] | \[\d+:\d+\]$`).ReplaceAllString(text, ""), err
}

// generation is a number that any write to the node's tables changes; 0 where the kernel has none.
func (s *story) generation() (id uint32, err error) {
	err = s.node.Do(func() (err error) {
		id, err = s.tools.Generation()
		return err
	})
	if errors.Is(err, iptexec.ErrNoGeneration) {
		return 0, nil
	}
	return id, err
}

// deleteRule deletes a rule of the nat table, as iptables-save prints it, in the way that a person would, and returns the
// command.
func (s *story) deleteRule(ctx context.Context, rule string) (string, error) {
	command := "iptables -t nat " + strings.Replace(rule, "-A ", "-D ", 1)
	cmd := s.node.Command(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin") // an ordinary user's PATH lacks these
	if out, err := cmd.CombinedOutput(); err != nil {
		return command, fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return command, nil
}
