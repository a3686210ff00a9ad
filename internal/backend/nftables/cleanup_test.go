package nftables

import (
	"slices"
	"strings"
	"testing"
)

func TestProbe(t *testing.T) {
	for _, opts := range []Options{DefaultOptions(), ipvsOptions()} {
		probes(t, inKernelWith(t, opts))
	}
}

func probes(t *testing.T, b *Backend) {
	t.Helper()
	for range 2 { // with and without our table
		before := nftProgram(t, "", "list", "ruleset")
		if err := b.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		if after := nftProgram(t, "", "list", "ruleset"); after != before {
			t.Errorf("the kernel has\n%s\nbefore:\n%s", after, before)
		}
		apply(t, b, newRig(t, service(1, 5)).rules)
	}
}

// Every statement that a Ruleset can have is among those that Probe tries.
func TestProbeTriesEverything(t *testing.T) {
	text := &strings.Builder{}
	for _, opts := range []Options{DefaultOptions(), ipvsOptions()} {
		for ch := range everything(opts).chains {
			text.WriteString(chainText(ch))
		}
	}
	for _, want := range []string{
		"icmpv6 type echo-request", "dnat ip to", "dnat ip6 to", "map @marks6", "ct original ip6 daddr", "reject with tcp reset",
		"random-2", "affinity4-2-3600s", "affinity6-2-3600s", "vmap @round-robin", "iifname", "fib saddr type", "update @affinity4", "delete @affinity6",
		"@service-cidrs4", "jump invalid", "ip daddr 127.0.0.0/8", "masquerade fully-random",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not try %s", want)
		}
	}
}

func TestCleanupKubeProxy(t *testing.T) {
	b := inKernel(t)
	apply(t, b, newRig(t, service(1, 5)).rules)
	if removed, err := b.CleanupKubeProxy(t.Context()); err != nil || removed != nil {
		t.Errorf("nothing is there: %q, %v", removed, err)
	}
	nftFile(t, "table ip kube-proxy { chain services { tcp dport 80 drop; }; }; table ip6 kube-proxy { map x { type ipv4_addr : verdict; }; }; table inet kube-proxy { }")
	removed, err := b.CleanupKubeProxy(t.Context())
	if err != nil || !slices.Equal(removed, []string{"table ip kube-proxy", "table ip6 kube-proxy"}) {
		t.Errorf("%q, %v", removed, err)
	}
	if tables := nftProgram(t, "", "list", "tables"); !strings.Contains(tables, "inet kube-proxy") || !strings.Contains(tables, "inet sluice") || strings.Contains(tables, "ip kube-proxy") || strings.Contains(tables, "ip6 kube-proxy") {
		t.Errorf("there are %s", tables)
	}
	nftFile(t, "delete table inet kube-proxy")
}

// The kernel stops to route loopback addresses before their guard goes, if they were routed for us.
func TestCleanupUnroutesLoopback(t *testing.T) {
	for _, localhost := range []bool{false, true} {
		inKernel(t)
		var told []bool
		b := New(DefaultOptions(), Deps{RouteLocalnet: func(on bool) error {
			told = append(told, on)
			if !on && !strings.Contains(nftProgram(t, "", "list", "tables"), "inet sluice") {
				t.Error("the guard went first")
			}
			return nil
		}})
		w := newRig(t, service(1, 5))
		cfg := testConfig()
		cfg.NodePortAddresses.Localhost, cfg.LocalhostNodePorts = true, localhost
		w.planner.SetConfig(cfg)
		apply(t, b, w.restarted().rules)
		for range 2 { // the second finds nothing
			if err := b.Cleanup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if want := [][]bool{nil, {true, false}}[b2i(localhost)]; !slices.Equal(told, want) {
			t.Errorf("localhost %t: the kernel was told %v, want %v", localhost, told, want)
		}
		_ = b.Close()
	}
}

// So it does where a process serves no node ports on localhost any more, as one before did.
func TestRestartUnroutesLoopback(t *testing.T) {
	inKernel(t)
	w := newRig(t, service(1, 5))
	cfg := testConfig()
	cfg.NodePortAddresses.Localhost = true
	for _, start := range []struct{ localhost, told bool }{{true, true}, {false, true}, {false, false}} {
		var told []bool
		b := New(DefaultOptions(), Deps{RouteLocalnet: func(on bool) error {
			told = append(told, on)
			if !strings.Contains(nftProgram(t, "", "list", "chain", "inet", "sluice", "filter-input"), "127.0.0.0/8") {
				t.Errorf("told %t without the guard", on)
			}
			return nil
		}})
		cfg.LocalhostNodePorts = start.localhost
		w.planner.SetConfig(cfg)
		apply(t, b, w.restarted().rules)
		if len(told) != b2i(start.told) || start.told && told[0] != start.localhost {
			t.Errorf("localhost %t: the kernel was told %v", start.localhost, told)
		}
		_ = b.Close()
	}
}
