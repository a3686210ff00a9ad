package iptables

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend/iptables/rules"
	"sluice/internal/kernel/netns"
	"sluice/internal/model"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

var variants = []string{"nft", "legacy"}

// program is like "ip6tables-legacy".
func program(f model.Family, variant string) string {
	return []string{"iptables-", "ip6tables-"}[f] + variant
}

// bare runs the programs themselves, in a namespace.
type bare struct {
	ns      *netns.NS
	program string
}

func newBare(t testing.TB, f model.Family, variant string) *bare {
	t.Helper()
	nstest.Require(t)
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return &bare{ns, program(f, variant)}
}

func (k *bare) Save(ctx context.Context) ([]byte, error) {
	return k.ns.Command(ctx, k.program+"-save").Output()
}

func (k *bare) Restore(ctx context.Context, text []byte) error { return k.run(ctx, text, "--noflush") }

func (k *bare) run(ctx context.Context, text []byte, args ...string) error {
	cmd := k.ns.Command(ctx, k.program+"-restore", args...)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s-restore %s: %w: %s", k.program, strings.Join(args, " "), err, out)
	}
	return nil
}

// Generation is unknown to it.
func (k *bare) Generation() (uint32, bool, error) { return 0, false, nil }

// TestKernelTakesEveryKind gives each kind of Service to both variants, as text and as a difference, and wants back
// the very text that was written.
func TestKernelTakesEveryKind(t *testing.T) {
	for _, variant := range variants {
		for _, kind := range kinds {
			t.Run(variant+"/"+kind.name, func(t *testing.T) {
				for f, addresses := range [][]string{{"10.96.0.10", "10.244.1.5", "10.244.2.5"}, {"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"}} {
					s, sl := service(model.Family(f), addresses)
					kind.edit(s, sl)
					k := newBare(t, model.Family(f), variant)
					checkKernel(t, k, Compile(planOf(s, sl), DefaultOptions()), model.Family(f))
				}
			})
		}
	}
}

func checkKernel(t testing.TB, k *bare, r *Ruleset, f model.Family) {
	t.Helper()
	var b bytes.Buffer
	if err := r.RenderFamily(&b, f); err != nil {
		t.Fatal(err)
	}
	if err := k.run(t.Context(), b.Bytes(), "--test"); err != nil {
		t.Fatal(err)
	}
	want := r.families[f].desired
	have, err := read(t.Context(), k, contents{})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Restore(t.Context(), diff(want, have).text()); err != nil {
		t.Fatal(err)
	}
	now, err := read(t.Context(), k, contents{})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for name, text := range want.chains[table] {
			if diff := cmp.Diff(text, now[table][name]); diff != "" {
				t.Errorf("%s %s (-written +saved):\n%s", table, name, diff)
			}
		}
	}
	if d := diff(want, now); d.size() != 0 {
		t.Errorf("still to do:\n%s", d.text())
	}
}

// TestOddNamesAreOneWord: whatever is in a name stays in the comment.
func TestOddNamesAreOneWord(t *testing.T) {
	s, sl := service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	s.Name.Name = `a" -j DROP 'b\` + "\nCOMMIT" + strings.Repeat("é", 200)
	sl.Service = s.Name
	for _, variant := range variants {
		checkKernel(t, newBare(t, model.IPv4, variant), Compile(planOf(s, sl), DefaultOptions()), model.IPv4)
	}
	rs, err := rules.Parse(strings.NewReader(text(t, Compile(planOf(s, sl), DefaultOptions()))))
	if err != nil || rs.Table("nat") == nil {
		t.Errorf("the rendering cannot be read: %v", err)
	}
}
