package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/kernel/iptexec"
)

// rules are what the daemon writes on the node in one mode: how the story shows them, looks at them past the daemon, and
// damages them.
type rules interface {
	// flags are those of the daemon that this mode needs to work before a reader's eyes.
	flags() []string
	// explain shows what was written for the two Services.
	explain(ctx context.Context) error
	// leadTo reports whether a connection may be sent to an endpoint.
	leadTo(ctx context.Context, endpoint netip.AddrPort) (bool, error)
	// damages are what somebody may do to the rules.
	damages(ctx context.Context) ([]damage, error)
	// state is all that a write to the node's tables would change, with the packets that the kernel counted, and
	// generation a number that any write changes; 0 where the kernel has none.
	state(ctx context.Context) (all string, generation uint32, err error)
	// leftovers are what the node's tables have of this mode.
	leftovers(ctx context.Context) (string, error)
}

// damage is something that is done to the rules.
type damage struct {
	// command does the same where the program is installed.
	command string
	do      func() error
	// mended reports whether everything is as it was.
	mended func() (bool, error)
	// soon says when the daemon comes to know of it.
	soon string
}

// theKernelTells is how the daemon comes to know of damage where it need not look for it.
const theKernelTells = "the kernel tells it what others do"

// The modes, as --mode has them.
const (
	modeNFTables  = "nftables"
	modeIPTables  = "iptables"
	modeIPVS      = "ipvs"
	modeUserspace = "userspace"
)

// proxied is set where connections end at the daemon, which opens others to pods.
func (s *story) proxied() bool { return s.Mode == modeUserspace }

// rulesOf are the rules of a mode.
func (s *story) rulesOf(ctx context.Context, mode string) (rules, error) {
	switch mode {
	case modeNFTables:
		return &nftablesRules{s}, nil
	case modeIPTables:
		tools, err := iptexec.Choose(ctx, "")
		return &iptablesRules{s, tools}, err
	case modeIPVS:
		beside, err := s.rulesOf(ctx, s.Choose(ctx))
		return &ipvsRules{beside, s}, err
	case modeUserspace:
		lead, err := s.rulesOf(ctx, s.Choose(ctx))
		return &userspaceRules{lead, s}, err
	}
	return nil, fmt.Errorf("mode %q: the demo tells of modes nftables, iptables, ipvs and userspace", mode)
}

// render is what `sluice render` prints for the Services.
func (s *story) render(ctx context.Context) (string, error) {
	return s.sluice(ctx, append([]string{"render"}, s.planFlags()...)...)
}

// compare checks that the kernel has what the manifests make, and nothing else.
func (s *story) compare(ctx context.Context) {
	_, differs := s.sluice(ctx, append([]string{"diff"}, s.planFlags()...)...)
	s.check(differs == nil, "sluice diff reads all of it back from the kernel, and finds that nothing else is there")
	if differs != nil {
		s.quote(differs.Error())
	}
}

// explain shows the rules and the way of a packet through them.
func (s *story) explain(ctx context.Context) error {
	if err := s.rules.explain(ctx); err != nil {
		return err
	}
	s.print("")
	return s.trace(ctx)
}

// trace lets the program tell the way of a packet through the rules as they are in the kernel.
func (s *story) trace(ctx context.Context) error {
	args := slices.Concat([]string{"trace", "--live"}, s.planFlags(), []string{"--from", clientAddress, "--to", mysqlNodePort + "/TCP"})
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
	s.check(ok, "it ends where the connections above ended: at both pods alike, with the node's address")
	return nil
}
