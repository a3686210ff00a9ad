package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// explain shows the rules and the way of a packet through them.
func (s *story) explain(ctx context.Context) error {
	saved, err := s.save(ctx)
	if err != nil {
		return err
	}
	s.say("What the daemon wrote for the registry (of its %d rules), as iptables-save prints it:", strings.Count(saved, "\n-A KUBE-"))
	s.print("")
	s.quote(about(saved, "default/registry:ssh"))
	s.print("")
	s.say("And for mysql-service, where a draw decides between two pods:")
	s.print("")
	s.quote(about(saved, "default/mysql-service"))
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

// save is what iptables-save says of the node's IPv4 tables.
func (s *story) save(ctx context.Context, flags ...string) (string, error) {
	out, err := s.node.Command(ctx, "iptables-save", flags...).Output()
	if err != nil {
		return "", fmt.Errorf("iptables-save on %s: %w", nodeName, err)
	}
	var kept []string
	for l := range strings.Lines(string(out)) {
		if !strings.HasPrefix(l, "#") { // the time of day
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, ""), nil
}

// about are the rules whose comment names a Service port, in the nat table.
func about(saved, port string) string {
	var found strings.Builder
	for l := range strings.Lines(saved) {
		if strings.HasPrefix(l, "-A KUBE-") && (strings.Contains(l, `"`+port+` `) || strings.Contains(l, `"`+port+`"`) || strings.Contains(l, "comment "+port+" ")) {
			found.WriteString(l)
		}
	}
	return found.String()
}
