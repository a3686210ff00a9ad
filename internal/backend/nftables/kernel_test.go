package nftables

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/nstest"
)

// inKernel is a Backend on the network of the test, which is left as it was found.
func inKernel(t testing.TB) *Backend {
	t.Helper()
	return inKernelWith(t, DefaultOptions())
}

func inKernelWith(t testing.TB, opts Options) *Backend {
	t.Helper()
	nstest.Require(t)
	b := New(opts, Deps{})
	t.Cleanup(func() {
		if err := b.Cleanup(context.Background()); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// another is a Backend of a new process, on the same kernel.
func another(t testing.TB) *Backend {
	t.Helper()
	b := New(DefaultOptions(), Deps{})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func apply(t testing.TB, b *Backend, r *Ruleset) backend.Result {
	t.Helper()
	return applyReq(t, b, r, backend.Request{})
}

var recheck = backend.Request{Recheck: true}

func applyReq(t testing.TB, b *Backend, r *Ruleset, req backend.Request) backend.Result {
	t.Helper()
	result, err := b.Apply(context.Background(), r, req)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// restarts has a new process find everything as it wants it.
func restarts(t testing.TB, w *rig) {
	t.Helper()
	result := apply(t, another(t), w.restarted().rules)
	if result.Written != 0 || len(result.Restored) > 0 || len(result.Former) > 0 {
		t.Errorf("a new process found other than it wants: %+v\n%s", result, nftProgram(t, "", "list", "table", "inet", "sluice"))
	}
}

func nftProgram(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nft", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("nft %s (Debian package nftables): %v\n%.2000s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// nftFile has nft do what a text says.
func nftFile(t testing.TB, text string) {
	t.Helper()
	nftProgram(t, text, "-f", "-")
}

func TestApplyAndRestart(t *testing.T) {
	b := inKernel(t)
	w := newRig(t, service(1, 5, 6, 7), service(2), service(3, 5))
	if got := apply(t, b, w.rules); got.Written == 0 {
		t.Error("a fresh kernel was written nothing")
	}
	restarts(t, w)
	if got := apply(t, b, w.rules); got.Written != 0 {
		t.Errorf("%d objects written, though nothing changed", got.Written)
	}
	for _, d := range []model.Delta{
		service(2, 9), service(1, 5, 7), gone(3), service(1, 5, 7, 8, 9),
		serviceWith(4, addrsOf("10.244.1.20", "10.244.1.21"), func(s *model.Service) { s.Affinity = time.Hour }),
		serviceWith(4, addrsOf("10.244.1.21", "10.244.1.22", "10.244.1.23"), func(s *model.Service) { s.Affinity = time.Hour }),
		serviceWith(5, addrsOf("10.244.1.20", "10.244.1.21"), func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }),
		serviceWith(5, addrsOf("10.244.1.20"), func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }),
		serviceWith(6, addrsOf("10.244.1.20"), func(s *model.Service) {
			s.Type, s.LoadBalancerIPs = model.LoadBalancer, addrsOf("192.0.2.1")
			s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("198.51.100.0/24")}
		}),
		{ServiceCIDRs: map[string]*model.ServiceCIDR{"a": {Name: "a", Prefixes: []netip.Prefix{
			netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("10.99.0.1/32"),
		}}}},
		gone(6), gone(5), gone(4),
	} {
		w.change(d)
		apply(t, b, w.rules)
		restarts(t, w)
		listing := nftProgram(t, "", "list", "table", "inet", "sluice")
		nftProgram(t, "delete table inet sluice\n"+listing, "--check", "-f", "-") // nft takes its own listing
	}
}

func addrsOf(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// TestRandomChanges leads a kernel from one random plan to the next, and has a new process find nothing to do each time.
func TestRandomChanges(t *testing.T) {
	b := inKernel(t)
	rapid.Check(t, func(t *rapid.T) {
		p := plan.NewPlanner(gen.Config(t))
		p.SetHost(gen.Host(t))
		snap := gen.Snapshot(t)
		p.Update(model.Delta(*snap))
		opts := drawOptions(t)
		r := Compile(p.Plan(), opts)
		for range 3 {
			if _, err := b.Apply(context.Background(), r, backend.Request{}); err != nil {
				t.Fatal(err)
			}
			fresh := New(opts, Deps{})
			result, err := fresh.Apply(context.Background(), Compile(p.Plan(), opts), backend.Request{})
			if err != nil {
				t.Fatal(err)
			}
			_ = fresh.Close()
			if result.Written != 0 {
				t.Fatalf("a new process wrote %d", result.Written)
			}
			next := gen.Snapshot(t)
			changes := p.Update(model.Diff(snap, next))
			snap = next
			r.Update(p.Plan(), changes)
		}
	})
}
