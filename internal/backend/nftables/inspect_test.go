package nftables

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/plan"
	"sluice/internal/trace/nftwalk"
)

// compareFresh is what a new process would change.
func compareFresh(t *testing.T, w *rig) []string {
	t.Helper()
	lines, err := another(t).Compare(t.Context(), w.restarted().rules)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestCompareWithAnEmptyKernel(t *testing.T) {
	inKernel(t)
	w := newRig(t, service(1, 5, 6))
	lines := compareFresh(t, w)
	for _, want := range []string{
		"+table inet sluice", "+map inet sluice services4", "+chain inet sluice balance",
		"+chain inet sluice nat-prerouting { type nat hook prerouting priority dstnat; policy accept; }",
		"+rule inet sluice nat-prerouting meta nfproto ipv4 meta priority set ip daddr . meta l4proto . th dport map @services4 goto balance",
		`+element inet sluice cluster-ips4 { 10.96.0.1 comment "default/service-1" }`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("it lacks %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if slices.ContainsFunc(lines, func(l string) bool { return l[0] != '+' }) {
		t.Error("something would go")
	}
}

func TestCompare(t *testing.T) {
	b := inKernel(t)
	w := newRig(t, service(1, 5, 6), service(2, 7), serviceWith(3, addrsOf("10.244.1.8"), func(s *model.Service) { s.Affinity = time.Hour }))
	apply(t, b, w.rules)
	if diff := cmp.Diff([]string(nil), compareFresh(t, w)); diff != "" {
		t.Error(diff)
	}
	for name, tt := range map[string]struct {
		nft  string
		want []string
	}{
		"an element": {
			"delete element inet sluice cluster-ips4 { 10.96.0.1 }; add element inet sluice cluster-ips4 { 10.96.7.7 }",
			[]string{`+element inet sluice cluster-ips4 { 10.96.0.1 comment "default/service-1" }`, "-element inet sluice cluster-ips4 { 10.96.7.7 }"},
		},
		"an element for all keys": {"add element inet sluice cluster-ips4 { * }", []string{"-element inet sluice cluster-ips4 { * }"}},
		"a sleeping table": {
			"add table inet sluice { flags dormant; }",
			[]string{"-table inet sluice { flags dormant; }", "+table inet sluice"},
		},
		"a chain":  {"add chain inet sluice mine", []string{"-chain inet sluice mine"}},
		"a set":    {"add set inet sluice mine { type ipv4_addr; }", []string{"-set inet sluice mine"}},
		"a rule":   {"add rule inet sluice round-robin drop", []string{"-rule inet sluice round-robin # not one that is made here"}},
		"no rules": {"flush chain inet sluice round-robin", []string{"+rule inet sluice round-robin meta priority & ffff:f000 vmap @round-robin"}},
	} {
		t.Run(name, func(t *testing.T) {
			nftFile(t, tt.nft)
			if diff := cmp.Diff(tt.want, compareFresh(t, w)); diff != "" {
				t.Error(diff)
			}
			applyReq(t, b, w.rules, recheck)
		})
	}
	w.planner.Update(gone(2))
	lines := compareFresh(t, w)
	if len(lines) == 0 || slices.ContainsFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "-element inet sluice ") }) {
		t.Errorf("a Service less is %q", lines)
	}
}

// The order of rules counts.
func TestCompareOrder(t *testing.T) {
	w := newRig(t)
	for ch := range w.rules.contents().chains {
		if len(ch.Rules) < 2 {
			continue
		}
		swapped := *ch
		swapped.Rules = slices.Clone(ch.Rules)
		slices.Reverse(swapped.Rules)
		if lines := chainLines(ch, haveChainOf(&swapped), nil); len(lines) != 2*len(ch.Rules) {
			t.Errorf("%s backwards: %q", ch.Name, lines)
		}
		if lines := chainLines(ch, haveChainOf(ch), nil); len(lines) != 0 {
			t.Errorf("%s as it is: %q", ch.Name, lines)
		}
	}
}

// The kernel's table answers as the Ruleset does, also to one who does not know the Services or the node.
func TestTraceKernel(t *testing.T) {
	b := inKernel(t)
	if _, err := another(t).TraceKernel(t.Context(), newRig(t).rules, plan.Packet{}, nftwalk.Host{}); !errors.Is(err, ErrNoTable) {
		t.Errorf("without a table: %v", err)
	}
	w := newRig(t, service(1, 5, 6), service(2), serviceWith(3, addrsOf("10.244.1.8"), func(s *model.Service) {
		s.Balancing = model.BalanceRoundRobin
		s.LoadBalancerIPs = addrsOf("192.0.2.1")
		s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/25")}
	}))
	apply(t, b, w.rules)
	host := nftwalk.Host{Addrs: w.rules.addresses}
	for _, to := range []string{"10.96.0.1:80", "10.96.0.2:80", "10.96.0.3:80", "10.96.0.1:81", "192.0.2.1:80", "198.51.100.7:80"} {
		for _, from := range []string{"10.244.1.99", "203.0.113.7", "203.0.113.200", "192.168.10.11"} {
			pkt := plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP}
			want := w.rules.Trace(pkt)
			for who, r := range map[string]*Ruleset{"who knows the Services": w.restarted().rules, "who does not": newRig(t).rules} {
				got, err := another(t).TraceKernel(t.Context(), r, pkt, host)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
					t.Errorf("%s: %s → %s: %s", who, from, to, diff)
				}
			}
		}
	}
}

// With virtual servers it is the same, also for who does not know that there are some.
func TestTraceKernelForIPVS(t *testing.T) {
	b := inKernel(t)
	w := newRigWith(t, ipvsOptions(), service(1, 5, 6), service(2), serviceWith(3, addrsOf("10.244.1.8", "10.244.2.8"), func(s *model.Service) {
		local(s)
		s.Ports[0].NodePort = 30080
	}))
	apply(t, b, w.rules)
	v := virtualServers{w.planner.Plan(), w.rules}
	has := newWalked(w.rules.contents()).hasAddress
	host := nftwalk.Host{Addrs: w.rules.addresses, IPVS: &nftwalk.IPVS{Has: has, Pick: v.pick}}
	for _, to := range []string{"10.96.0.1:80", "10.96.0.2:80", "10.96.0.3:80", "10.96.0.1:81", "192.0.2.1:80", "192.0.2.1:81", "192.168.10.11:30080", "198.51.100.7:80"} {
		for _, from := range []string{"10.244.1.99", "10.244.1.5", "203.0.113.7", "192.168.10.11"} {
			pkt := plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP}
			want := w.rules.TraceBalanced(pkt, v.pick)
			for who, r := range map[string]*Ruleset{"who knows": w.restarted().rules, "who does not": newRig(t).rules} {
				got, err := another(t).TraceKernel(t.Context(), r, pkt, host)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
					t.Errorf("%s: %s → %s: %s", who, from, to, diff)
				}
			}
		}
	}
}

// A rule that is not known leaves doubt.
func TestTraceKernelTellsOfForeignRules(t *testing.T) {
	b := inKernel(t)
	w := newRig(t, service(1, 5))
	apply(t, b, w.rules)
	nftFile(t, "insert rule inet sluice balance drop")
	pkt := plan.Packet{From: netip.MustParseAddr("203.0.113.7"), To: netip.MustParseAddrPort("10.96.0.1:80"), Protocol: model.TCP}
	got, err := another(t).TraceKernel(t.Context(), w.rules, pkt, nftwalk.Host{})
	if err != nil {
		t.Fatal(err)
	}
	if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, unknownRule) || !strings.Contains(warnings, "give the flags") {
		t.Errorf("it warns %q", got.Warnings)
	}
}

func TestHasTable(t *testing.T) {
	b := inKernel(t)
	for _, want := range []bool{false, true} {
		if has, err := b.HasTable(t.Context()); err != nil || has != want {
			t.Errorf("%t, %v; want %t", has, err, want)
		}
		apply(t, b, newRig(t).rules)
	}
}

// haveChainOf is a chain as the kernel tells of it.
func haveChainOf(c *nft.Chain) *haveChain {
	h := &haveChain{base: c.Base, policy: 1}
	for i := range c.Rules {
		h.rules = append(h.rules, wire.Hash(&c.Rules[i]))
	}
	return h
}

// However a rule tells pods, the kernel's table answers who does not know how, and diff tells the rule.
func TestTraceKernelKnowsHowPodsAreTold(t *testing.T) {
	w := newRig(t, service(1, 5))
	node := w.planner.Plan().Node
	for _, d := range []plan.Detector{
		{CIDR: netip.MustParsePrefix("10.128.0.0/9")},
		{CIDR: netip.MustParsePrefix("10.244.0.0/16")},
		{CIDR: netip.MustParsePrefix("10.1.2.3/32")},
		{Interface: "cni0"},
		{Interface: "cali", Wildcard: true},
	} {
		b := inKernel(t)
		other := node
		other.Detect[model.IPv4] = d
		made := Compile(&plan.Plan{Node: other, Ports: w.planner.Plan().Ports}, w.opts)
		apply(t, b, made)
		pkt := plan.Packet{From: netip.MustParseAddr("10.200.0.9"), To: netip.MustParseAddrPort("10.96.0.1:80"), Protocol: model.TCP, Interface: "cali1"}
		got, err := another(t).TraceKernel(t.Context(), newRig(t).rules, pkt, nftwalk.Host{Addrs: made.addresses})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(made.Trace(pkt), got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("%+v: %s", d, diff)
		}
		lines, err := another(t).Compare(t.Context(), newRig(t, service(1, 5)).rules)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(lines, "\n"); strings.Contains(text, unknownRule) {
			t.Errorf("%+v: it does not know a rule:\n%s", d, text)
		}
	}
}
