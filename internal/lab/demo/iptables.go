package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"sluice/internal/kernel/iptexec"
)

// iptablesRules are those of mode iptables.
type iptablesRules struct {
	*story
	tools *iptexec.Tools
}

// flags have the daemon look for what others changed every second, where the kernel does not tell it of that and the
// default is every 30 seconds.
func (r *iptablesRules) flags() []string {
	if r.tools.Variant == iptexec.NFT {
		return nil
	}
	return []string{"--iptables-sync-period", "1s"}
}

func (r *iptablesRules) explain(ctx context.Context) error {
	saved, err := r.saved(ctx, "nat")
	if err != nil {
		return err
	}
	r.say("What the daemon wrote for the registry (of its %d rules in the nat table), as iptables-save prints it:", strings.Count(saved, "\n-A KUBE-"))
	r.print("")
	r.quote(about(saved, "default/registry:ssh"))
	r.print("")
	if r.proxied() {
		r.say("And for mysql-service:")
	} else {
		r.say("And for mysql-service, where a draw decides between two pods:")
	}
	r.print("")
	r.quote(about(saved, "default/mysql-service"))
	r.print("")
	r.say("KUBE-MARK-MASQ puts a mark on what needs the node's address, and after routing KUBE-POSTROUTING acts on it:")
	r.print("")
	r.quote(of(saved, "KUBE-MARK-MASQ", "KUBE-POSTROUTING"))
	return nil
}

func (r *iptablesRules) leadTo(ctx context.Context, endpoint netip.AddrPort) (bool, error) {
	saved, err := r.saved(ctx, "nat")
	return strings.Contains(saved, "--to-destination "+endpoint.String()), err
}

// damages are that somebody deletes the rule for a cluster IP.
func (r *iptablesRules) damages(ctx context.Context) ([]damage, error) {
	before, err := r.saved(ctx, "nat")
	if err != nil {
		return nil, err
	}
	rule := ruleFor(before, mysqlAddress)
	if rule == "" {
		return nil, fmt.Errorf("no rule leads to %s", mysqlAddress)
	}
	soon := theKernelTells
	if r.tools.Variant != iptexec.NFT {
		soon = "it looks every second here, every 30 s by default"
	}
	command := "iptables -t nat " + strings.Replace(rule, "-A ", "-D ", 1)
	return []damage{{
		command: command,
		do:      func() error { return r.shellCommand(ctx, command) },
		mended: func() (bool, error) {
			now, err := r.saved(ctx, "nat")
			return sameRules(before, now), err
		},
		soon: soon,
	}}, nil
}

// shellCommand does what a person would type.
func (r *iptablesRules) shellCommand(ctx context.Context, command string) error {
	cmd := r.node.Command(ctx, "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin") // an ordinary user's PATH lacks these
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

func (r *iptablesRules) state(ctx context.Context) (all string, generation uint32, err error) {
	err = r.node.Do(func() (err error) {
		generation, err = r.tools.Generation()
		return err
	})
	if err != nil && !errors.Is(err, iptexec.ErrNoGeneration) {
		return "", 0, err
	}
	all, err = r.save(ctx, allTables()...)
	return all, generation, err
}

func (r *iptablesRules) leftovers(ctx context.Context) (string, error) {
	saved, err := r.saved(ctx, allTables()...)
	return linesWith(saved, "KUBE-"), err
}

// allTables are those that any mode of a Service proxy writes with iptables.
func allTables() []string { return []string{"mangle", "nat", "filter"} }

// save is what iptables-save says of tables of the node, IPv4, with packet counters.
func (r *iptablesRules) save(ctx context.Context, tables ...string) (text string, err error) {
	err = r.node.Do(func() error {
		saved, err := r.tools.Save(ctx, iptexec.IPv4, tables...)
		text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(saved), "") // the time of day
		return err
	})
	return text, err
}

// saved is the same without counters.
func (r *iptablesRules) saved(ctx context.Context, tables ...string) (string, error) {
	text, err := r.save(ctx, tables...)
	return regexp.MustCompile(`(?m)^\[\d+:\d+\] | \[\d+:\d+\]$`).ReplaceAllString(text, ""), err
}
