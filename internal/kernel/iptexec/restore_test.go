package iptexec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/testkit/nstest"
)

// TestSaveSomeTables: only those named are in the text, in that order, also where the program prints others.
func TestSaveSomeTables(t *testing.T) {
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		if tools.Variant == iptexec.Legacy {
			nstest.RequireRoot(t, "an ordinary user may not read which tables the kernel has")
		}
		restore(t, tools, iptexec.IPv4, "*raw\n:A*nat - [0:0]\n-A PREROUTING -j A*nat\nCOMMIT\n*nat\n:A - [0:0]\nCOMMIT\n*filter\n:A - [0:0]\nCOMMIT\n")
		for _, tables := range [][]string{{"nat", "filter"}, {"filter", "nat"}, {"nat"}, {"nat", "security"}} {
			text, err := tools.Save(t.Context(), iptexec.IPv4, tables...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for l := range strings.Lines(string(text)) {
				if name, ok := strings.CutPrefix(l, "*"); ok {
					got = append(got, strings.TrimSpace(name))
				}
			}
			want := slices.DeleteFunc(slices.Clone(tables), func(t string) bool { return t == "security" })
			if !slices.Equal(got, want) || strings.Count(string(text), "\nCOMMIT\n") != len(want) {
				t.Errorf("%v:\n%s", tables, text)
			}
		}
	})
}

func TestRestoreAndSave(t *testing.T) {
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		for _, f := range []iptexec.Family{iptexec.IPv4, iptexec.IPv6} {
			text := "*nat\n:KUBE-A - [0:0]\n-A KUBE-A -j RETURN\nCOMMIT\n"
			if err := tools.Restore(t.Context(), f, []byte(text), iptexec.RestoreOptions{Test: true}); err != nil {
				t.Fatal(err)
			}
			if got := save(t, tools, f); strings.Contains(got, "KUBE-A") {
				t.Errorf("%s: a test changed the rules:\n%s", f, got)
			}
			restore(t, tools, f, text)
			if got := save(t, tools, f); !strings.Contains(got, "-A KUBE-A -j RETURN\n") {
				t.Errorf("%s: the rule is missing:\n%s", f, got)
			}
			restore(t, tools, f, "*nat\n:KUBE-A - [0:0]\n-X KUBE-A\nCOMMIT\n")
			if got := save(t, tools, f); strings.Contains(got, "KUBE-A") {
				t.Errorf("%s: the chain is still there:\n%s", f, got)
			}
		}
	})
}

// A long text takes another way through the nft variant; it must end in the same rules, and count lines the same.
func TestLongText(t *testing.T) {
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		const comments, chains = 10_000, 500 // few rules: an ordinary user's transactions are limited
		var b strings.Builder
		b.WriteString("*nat\n" + strings.Repeat("# padding\n", comments))
		for i := range chains {
			fmt.Fprintf(&b, ":KUBE-LONG-%d - [0:0]\n", i)
		}
		for i := range chains {
			fmt.Fprintf(&b, "-A KUBE-LONG-%d -j RETURN\n", i)
		}
		restore(t, tools, iptexec.IPv4, b.String()+"COMMIT\n")
		if got := strings.Count(save(t, tools, iptexec.IPv4), "-j RETURN"); got != chains {
			t.Errorf("%d rules, want %d", got, chains)
		}
		err := tools.Restore(t.Context(), iptexec.IPv4, []byte(b.String()+"hello\nCOMMIT\n"), iptexec.RestoreOptions{})
		var refused *iptexec.RestoreError
		if !errors.As(err, &refused) || refused.Line != comments+2*chains+2 || refused.Text != "hello" {
			t.Errorf("got %v", err)
		}
	})
}

func TestRestoreErrors(t *testing.T) {
	tests := []struct {
		name, text string
		line       map[iptexec.Variant]int
		says       map[iptexec.Variant]string // where it differs from the first
	}{
		{"unknown option", "*nat\n-A PREROUTING --nosuch\nCOMMIT\n", both(2), say(`unknown option "--nosuch"`)},
		{"unknown target", "*nat\n:A - [0:0]\n-A A -j NOSUCH\n-A A -j RETURN\nCOMMIT\n", both(3), say("NOSUCH")},
		{"unknown chain", "*nat\n:A - [0:0]\n-A NOSUCH -j ACCEPT\nCOMMIT\n", both(3), nil},
		{"unknown match", "*nat\n-A PREROUTING -m nosuch -j ACCEPT\nCOMMIT\n", both(2), say("Couldn't load match `nosuch'")},
		{"unknown table", "*nosuch\nCOMMIT\n", both(1), say("nosuch")},
		{"address", "*nat\n-A PREROUTING -s 1.2.3.400 -j ACCEPT\nCOMMIT\n", both(2), say("1.2.3.400")},
		{"no rule", "*nat\nhello\nCOMMIT\n", both(2), say("Bad argument `hello'")},
		{"no table", "hello\n", both(1), nil},
		{"no commit", "*nat\n-A PREROUTING -j ACCEPT\n", both(3), say("COMMIT expected")},
		{"no policy", "*nat\n:A\nCOMMIT\n", both(2), say("policy invalid")},
		{"long name", "*nat\n:A23456789012345678901234567890 - [0:0]\nCOMMIT\n", both(2), say("A23456789012345678901234567890")},
		{"policy", "*nat\n:PREROUTING FOO [0:0]\nCOMMIT\n", both(2), say("Bad policy name")},
		{
			"used chain", "*nat\n:B - [0:0]\n:C - [0:0]\n-A B -j C\n-X C\nCOMMIT\n", both(5),
			map[iptexec.Variant]string{iptexec.NFT: "CHAIN_DEL failed (Device or resource busy): chain C"},
		},
		{"no such rule", "*nat\n-D PREROUTING -j ACCEPT\nCOMMIT\n", both(2), nil},
		{
			"loop", "*nat\n:L1 - [0:0]\n:L2 - [0:0]\n-A L1 -j L2\n-A L2 -j L1\n-A PREROUTING -j L1\nCOMMIT\n",
			map[iptexec.Variant]int{iptexec.NFT: 6, iptexec.Legacy: 7}, // legacy blames the table as a whole
			map[iptexec.Variant]string{iptexec.NFT: "RULE_APPEND failed (Too many links): rule in chain PREROUTING"},
		},
		{"second table", "*nat\nCOMMIT\n*filter\n-A INPUT -s\nCOMMIT\n", both(4), say(`option "-s" requires an argument`)},
	}
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		for _, tt := range tests {
			err := tools.Restore(t.Context(), iptexec.IPv4, []byte(tt.text), iptexec.RestoreOptions{})
			var refused *iptexec.RestoreError
			if !errors.As(err, &refused) {
				t.Errorf("%s: got %v", tt.name, err)
				continue
			}
			line := tt.line[tools.Variant]
			if refused.Line != line || refused.Text != strings.Split(tt.text, "\n")[line-1] || refused.ExitCode == 0 {
				t.Errorf("%s: line %d (%s), want %d: %v", tt.name, refused.Line, refused.Text, line, err)
			}
			if !strings.Contains(refused.Message, tt.says[tools.Variant]) || strings.Contains(refused.Message, "--help") {
				t.Errorf("%s: message %q", tt.name, refused.Message)
			}
			if errors.Is(err, iptexec.ErrTransient) {
				t.Errorf("%s: %v is transient", tt.name, err)
			}
		}
	})
}

func TestLockIsHeld(t *testing.T) {
	nstest.Require(t)
	tools, err := iptexec.Find(t.Context(), iptexec.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	holdLock(t)
	for _, wait := range []time.Duration{0, time.Second} {
		err = tools.Restore(t.Context(), iptexec.IPv4, []byte("*nat\nCOMMIT\n"), iptexec.RestoreOptions{Wait: wait})
		if !errors.Is(err, iptexec.ErrLocked) || !errors.Is(err, iptexec.ErrTransient) {
			t.Errorf("wait %s: got %v", wait, err)
		}
	}
}

func TestCancelledRestore(t *testing.T) {
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := tools.Restore(ctx, iptexec.IPv4, []byte("*nat\nCOMMIT\n"), iptexec.RestoreOptions{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestGeneration(t *testing.T) {
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		before, err := tools.Generation()
		if tools.Variant == iptexec.Legacy {
			if !errors.Is(err, iptexec.ErrNoGeneration) {
				t.Errorf("got %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		save(t, tools, iptexec.IPv4)
		if again, err := tools.Generation(); err != nil || again != before {
			t.Errorf("got %v, %v after %v with nothing changed", again, err, before)
		}
		restore(t, tools, iptexec.IPv4, "*nat\n:KUBE-GEN - [0:0]\nCOMMIT\n")
		after, err := tools.Generation()
		if err != nil || after == before {
			t.Errorf("got %d, %v after %d with a new chain", after, err, before)
		}
	})
}

func eachVariant(t *testing.T, f func(*testing.T, *iptexec.Tools)) {
	nstest.Require(t)
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		t.Run(string(v), func(t *testing.T) {
			tools, err := iptexec.Find(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			if tools.Variant != v {
				t.Fatalf("the programs are of variant %s, want %s", tools.Variant, v)
			}
			f(t, tools)
			for _, f := range []iptexec.Family{iptexec.IPv4, iptexec.IPv6} {
				_ = tools.Restore(context.Background(), f, []byte("*nat\nCOMMIT\n*filter\nCOMMIT\n"), iptexec.RestoreOptions{Flush: true})
			}
		})
	}
}

func restore(t *testing.T, tools *iptexec.Tools, f iptexec.Family, text string) {
	t.Helper()
	err := tools.Restore(t.Context(), f, []byte(text), iptexec.RestoreOptions{Counters: true, Wait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, tools *iptexec.Tools, f iptexec.Family) string {
	t.Helper()
	text, err := tools.Save(t.Context(), f, "nat", "filter")
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(text)) + "\n"
}

func both(line int) map[iptexec.Variant]int {
	return map[iptexec.Variant]int{iptexec.NFT: line, iptexec.Legacy: line}
}

func say(text string) map[iptexec.Variant]string {
	return map[iptexec.Variant]string{iptexec.NFT: text, iptexec.Legacy: text}
}

func TestChains(t *testing.T) {
	eachVariant(t, func(t *testing.T, tools *iptexec.Tools) {
		if tools.Variant == iptexec.Legacy {
			nstest.RequireRoot(t, "an ordinary user may not read which tables the kernel has")
		}
		for _, f := range []iptexec.Family{iptexec.IPv4, iptexec.IPv6} {
			restore(t, tools, f, "*filter\n:KUBE-A - [0:0]\n:KUBE-B - [0:0]\n-A KUBE-A -j KUBE-B\nCOMMIT\n*nat\n:KUBE-C - [0:0]\nCOMMIT\n")
			got, err := tools.Chains(t.Context(), f, "filter")
			slices.Sort(got)
			if want := []string{"FORWARD", "INPUT", "KUBE-A", "KUBE-B", "OUTPUT"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: chains %v, error %v, want %v", f, got, err, want)
			}
			if _, err := tools.Chains(t.Context(), f, "security"); err != nil {
				t.Errorf("%s: a table that is not there: %v", f, err)
			}
			if text, err := tools.Save(t.Context(), f, "nat", "security"); err != nil || bytes.Contains(text, []byte("*security")) {
				t.Errorf("%s: listing a table made it: %v\n%s", f, err, text)
			}
		}
	})
}
