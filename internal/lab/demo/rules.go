package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// explain shows the rules and the way of a packet through them.
func (s *story) explain(ctx context.Context) error {
	saved, err := s.rules(ctx, "nat")
	if err != nil {
		return err
	}
	s.say("What the daemon wrote for the registry (of its %d rules in the nat table), as iptables-save prints it:", strings.Count(saved, "\n-A KUBE-"))
	s.print("")
	s.quote(about(saved, "default/registry:ssh"))
	s.print("")
	s.say("And for mysql-service, where a draw decides between two pods:")
	s.print("")
	s.quote(about(saved, "default/mysql-service"))
	s.print("")
	s.say("KUBE-MARK-MASQ puts a mark on what needs the node's address, and after routing KUBE-POSTROUTING acts on it:")
	s.print("")
	s.quote(of(saved, "KUBE-MARK-MASQ", "KUBE-POSTROUTING"))
	s.print("")
	return s.trace(ctx)
}

// trace lets the program tell the way of a packet through the rules as they are in the kernel.
func (s *story) trace(ctx context.Context) error {
	args := append([]string{"trace"}, s.planFlags()...)
	args = append(args, "--from", clientAddress, "--to", mysqlNodePort+"/TCP")
	s.say("The way of one packet, from the client to the node port:")
	s.print("")
	s.command(strings.Join(append([]string{"sluice"}, args...), " "))
	told, err := s.sluice(ctx, args...)
	if err != nil {
		return err
	}
	s.quote(told)
	s.print("")

	answer, err := s.sluice(ctx, append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	var verdict struct {
		Verdict   string
		Endpoints []struct {
			Address     string
			Probability float64
			Masquerade  bool
		}
	}
	if err := json.Unmarshal([]byte(answer), &verdict); err != nil {
		return fmt.Errorf("read the answer of trace: %w", err)
	}
	pods := s.behind("mysql-service")
	ok := verdict.Verdict == "forward" && len(verdict.Endpoints) == len(pods)
	for i := 0; ok && i < len(pods); i++ {
		e := verdict.Endpoints[i]
		ok = e.Address == pods[i].endpoint().String() && e.Probability == 0.5 && e.Masquerade
	}
	s.check(ok, "it ends where the connections above ended: at both pods alike, masqueraded")
	return nil
}

// about are the rules whose comment names a Service port.
func about(saved, port string) string {
	named := regexp.MustCompile(`(?m)^-A .*[ "]` + regexp.QuoteMeta(port) + `[ "].*\n`)
	return strings.Join(named.FindAllString(saved, -1), "")
}

// of are the rules of some chains.
func of(saved string, chains ...string) string {
	rule := regexp.MustCompile(`(?m)^-A (` + strings.Join(chains, "|") + `) .*\n`)
	return strings.Join(rule.FindAllString(saved, -1), "")
}
