package iptables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/sample"
)

// fakeTables are tables in memory, of a kernel that tells of changes or, as the legacy variant, does not.
type fakeTables struct {
	contents
	legacy     bool
	generation *uint32 // shared by both families
	saves      int
	fail       error // of the next call that reads or writes
	failWrite  error // of the next call that writes
	// hidden is a chain that something leads to which Save does not show.
	hidden  string
	packets uint64 // that each rule has matched
	// refuses are parts of lines that the kernel does not take.
	refuses []string
}

func newFake(legacy bool) *fakeTables {
	return &fakeTables{contents: emptyKernel(), legacy: legacy, generation: new(uint32)}
}

func (k *fakeTables) fault() (err error) {
	err, k.fail = k.fail, nil
	return err
}

func (k *fakeTables) Save(context.Context) ([]byte, error) {
	k.saves++
	var b strings.Builder
	for _, t := range tables {
		b.WriteString("*" + t.String() + "\n")
		for _, name := range slices.Sorted(maps.Keys(k.contents[t])) {
			b.WriteString(":" + name + " - [0:0]\n")
		}
		for _, name := range slices.Sorted(maps.Keys(k.contents[t])) {
			b.WriteString(k.contents[t][name])
		}
		b.WriteString("COMMIT\n")
	}
	return []byte(b.String()), k.fault()
}

func (k *fakeTables) Restore(_ context.Context, text []byte) (err error) {
	if err := errors.Join(k.fault(), k.failWrite); err != nil {
		k.failWrite = nil
		return err
	}
	line := k.refusedLine(string(text))
	if line > 0 { // the tables ahead are written
		ahead := lines(string(text))[:line-1]
		for len(ahead) > 0 && ahead[len(ahead)-1] != "COMMIT" {
			ahead = ahead[:len(ahead)-1]
		}
		text = []byte(join(ahead))
	}
	k.contents, err = restore(k.contents, string(text))
	*k.generation += uint32(strings.Count(string(text), "COMMIT"))
	if line > 0 && err == nil {
		return &iptexec.RestoreError{Line: line, Message: "operation not supported"}
	}
	return err
}

// refusedLine is the first line of a text that is not taken, from 1; 0: there is none.
func (k *fakeTables) refusedLine(text string) int {
	return 1 + slices.IndexFunc(lines(text), func(l string) bool {
		refused := func(part string) bool { return !strings.HasPrefix(l, ":") && strings.Contains(l, part) }
		return l == "-X "+k.hidden || slices.ContainsFunc(k.refuses, refused)
	})
}

// Packets are as many for each rule as the test has.
func (k *fakeTables) Packets(_ context.Context, table Table, chain string) ([]uint64, error) {
	return slices.Repeat([]uint64{k.packets}, len(lines(k.contents[table][chain]))), k.fault()
}

func (k *fakeTables) Probe(context.Context) error { return nil }

func (k *fakeTables) Generation() (uint32, bool, error) { return *k.generation, !k.legacy, nil }

// remove deletes a chain's rules, as somebody else.
func (k *fakeTables) remove(t Table, chain string) {
	k.contents[t][chain] = ""
	*k.generation++
}

func newTestBackend(legacy bool) (*Backend, [2]*fakeTables) {
	fakes := [2]*fakeTables{newFake(legacy), newFake(legacy)}
	fakes[1].generation = fakes[0].generation
	return onFakes(fakes), fakes
}

// onFakes is a new process that works with kernels that there are already.
func onFakes(fakes [2]*fakeTables) *Backend {
	return New(DefaultOptions(), Deps{
		Tables: [2]Tables{fakes[0], fakes[1]}, RouteLocalnet: func(bool) error { return nil },
	})
}

func TestApplyTwiceWritesOnce(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		b, fakes := newTestBackend(legacy)
		r := webRules()
		if result, err := b.Apply(t.Context(), r, backend.Request{}); err != nil || result.Written == 0 {
			t.Fatalf("first: %+v, %v", result, err)
		}
		if result, err := b.Apply(t.Context(), r, backend.Request{}); err != nil || result.Written != 0 {
			t.Fatalf("second: %+v, %v", result, err)
		}
		if fakes[0].saves != 1 || fakes[1].saves != 1 {
			t.Errorf("legacy %v: tables were read %d and %d times, want once", legacy, fakes[0].saves, fakes[1].saves)
		}
		if result, err := onFakes(fakes).Apply(t.Context(), webRules(), backend.Request{}); err != nil || result.Written != 0 || result.Restored != nil {
			t.Fatalf("another process: %+v, %v", result, err)
		}
	}
}

// webRules are those of a Service that has everything.
func webRules() *Ruleset {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	return Compile(planOf(s, sl), DefaultOptions())
}

func TestRestoresWhatOthersRemoved(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		b, fakes := newTestBackend(legacy)
		if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil {
			t.Fatal(err)
		}
		fakes[0].remove(Nat, chainServices)
		fakes[0].remove(Nat, chainPrerouting)
		result, err := b.Apply(t.Context(), webRules(), backend.Request{Recheck: legacy})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"IPv4 nat KUBE-SERVICES", "IPv4 nat PREROUTING → KUBE-SERVICES"}
		if diff := cmp.Diff(want, result.Restored); diff != "" || result.Written != 2 {
			t.Errorf("legacy %v: %d written, restored (-want +got):\n%s", legacy, result.Written, diff)
		}
	}
}

// TestLegacyReadsBeforeItWrites: it cannot know of others' changes, but when it writes it repairs them.
func TestLegacyReadsBeforeItWrites(t *testing.T) {
	b, fakes := newTestBackend(true)
	if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil {
		t.Fatal(err)
	}
	fakes[0].remove(Nat, chainServices)
	if result, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil || result.Restored != nil {
		t.Fatalf("nothing to write: %+v, %v", result, err)
	}
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	external(s)
	result, err := b.Apply(t.Context(), Compile(planOf(s, sl), DefaultOptions()), backend.Request{})
	if err != nil || !slices.Equal(result.Restored, []string{"IPv4 nat KUBE-SERVICES"}) {
		t.Fatalf("a change: %+v, %v", result, err)
	}
}

func TestOneFamilyFails(t *testing.T) {
	b, fakes := newTestBackend(false)
	broken := errors.New("broken")
	fakes[0].fail = broken
	result, err := b.Apply(t.Context(), webRules(), backend.Request{})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "IPv4: ") || strings.Contains(err.Error(), "IPv6") {
		t.Errorf("error is %v", err)
	}
	if result.Written == 0 || fakes[1].contents[Nat][chainServices] == "" {
		t.Error("the other family is not written")
	}
}

func TestMissingFamilyIsToldOnce(t *testing.T) {
	b, fakes := newTestBackend(false)
	fakes[1].fail = iptexec.AsNoFamily(errors.New("can't initialize ip6tables table `nat': Table does not exist (do you need to insmod?)"))
	if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); !errors.Is(err, ErrNoFamily) {
		t.Errorf("error is %v", err)
	}
	if _, err := b.Apply(t.Context(), webRules(), backend.Request{Recheck: true}); err != nil || fakes[1].saves != 1 {
		t.Errorf("told again: %v", err)
	}
}

// TestNoFamilyIsToldEveryTime: to write nothing at all is no success.
func TestNoFamilyIsToldEveryTime(t *testing.T) {
	b, fakes := newTestBackend(false)
	for _, fake := range fakes {
		fake.fail = iptexec.AsNoFamily(errors.New("Table does not exist"))
	}
	for range 2 {
		if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); !errors.Is(err, ErrNoFamily) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestFailureNamesTheServicePort(t *testing.T) {
	r := webRules()
	for _, part := range []string{"-A KUBE-SEP", "-A KUBE-EXT-", "-A KUBE-SERVICES -d 10.96.0.10", "health", "-A KUBE-MARK-MASQ"} {
		b, fakes := newTestBackend(false)
		fakes[0].refuses = []string{part}
		result, err := b.Apply(t.Context(), r, backend.Request{})
		if shared := part == "health" || part == "-A KUBE-MARK-MASQ"; shared {
			var at *LineError
			if !errors.As(err, &at) || !strings.Contains(at.Line, part) || at.Port != nil || result.Refused != nil {
				t.Errorf("%s: error %v, refused %v; want the line, and nobody refused", part, err, result.Refused)
			}
			continue
		}
		if err != nil || len(result.Refused) != 1 {
			t.Fatalf("%s: error %v, refused %v; want one Service port refused", part, err, result.Refused)
		}
		for id, why := range result.Refused {
			var at *LineError
			if !errors.As(why, &at) || !strings.Contains(at.Line, part) || *at.Port != id || !strings.Contains(why.Error(), id.String()) {
				t.Errorf("%s: %v is refused: %v", part, id, why)
			}
		}
	}
}

// TestFaultsLoseNothing has calls fail at random: once they succeed, everything is as it should be.
func TestFaultsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.NewPlanner(gen.Config(t))
		p.SetHost(gen.Host(t))
		p.Update(model.Delta(*gen.Snapshot(t)))
		b, fakes := newTestBackend(rapid.Bool().Draw(t, "legacy"))
		r := b.Compile(p.Plan()).(*Ruleset)
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			r.Update(p.Plan(), p.Update(gen.Delta(t)))
			fake := fakes[rapid.IntRange(0, 1).Draw(t, "side")]
			if rapid.Bool().Draw(t, "fails") {
				fake.fail = errors.New("fault")
			}
			if rapid.Bool().Draw(t, "vandals") {
				vandalize(t, &fake.contents)
				*fake.generation++
			}
			_, _ = b.Apply(context.Background(), r, backend.Request{Recheck: rapid.Bool().Draw(t, "recheck")})
		}
		fakes[0].fail, fakes[1].fail = nil, nil
		if _, err := b.Apply(context.Background(), r, backend.Request{Recheck: true}); err != nil {
			t.Fatal(err)
		}
		for f, fake := range fakes {
			if d := diff(r.families[f].desired, fake.contents); d.size() > 0 {
				t.Fatalf("still to do:\n%s", d.text())
			}
		}
	})
}

func TestCleanup(t *testing.T) {
	const foreign = "-A PREROUTING -s 9.9.9.9/32 -j ACCEPT\n"
	for _, kubelet := range []bool{false, true} {
		t.Run(fmt.Sprintf("kubelet %t", kubelet), func(t *testing.T) {
			b, fakes := newTestBackend(false)
			var route []bool
			b.deps.RouteLocalnet = func(on bool) error { route = append(route, on); return nil }
			fakes[0].contents[Nat][chainPrerouting] = foreign
			want := emptyKernel()
			want[Nat][chainPrerouting] = foreign
			if kubelet {
				fakes[0].contents[Mangle]["KUBE-KUBELET-CANARY"] = ""
				want[Mangle]["KUBE-KUBELET-CANARY"] = ""
				want[Filter][chainFirewall] = webRules().families[0].firewall
				want[Filter][chainInput] = firewallJumps[0].rule + "\n"
				want[Filter][chainOutput] = firewallJumps[1].rule + "\n"
			}
			if _, err := b.Apply(t.Context(), webRules(), backend.Request{}); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second finds nothing, which is no error
				if err := b.Cleanup(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, fakes[0].contents); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(emptyKernel(), fakes[1].contents); diff != "" {
				t.Errorf("left of IPv6 (-want +got):\n%s", diff)
			}
			if lowered := slices.Contains(route, false); lowered == kubelet {
				t.Errorf("route_localnet was set to %v, and kubelet is there: %t", route, kubelet)
			}
		})
	}
}

func TestOtherVariantIsTold(t *testing.T) {
	b, _ := newTestBackend(false)
	old := newFake(true)
	b.deps.Others = []Other{{"IPv4, legacy", old}}
	if found, err := b.OtherVariant(t.Context()); err != nil || found != nil {
		t.Fatalf("%v, %v", found, err)
	}
	old.contents[Nat]["KUBE-SERVICES"] = ""
	if found, err := b.OtherVariant(t.Context()); err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
}
