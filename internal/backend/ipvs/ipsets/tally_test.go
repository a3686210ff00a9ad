package ipsets

import (
	"context"
	"strings"
	"testing"

	"sluice/internal/model"
)

func TestRulesAreCounted(t *testing.T) {
	eachVariant(t, func(n *node) {
		if got := n.backend.Rules(); got != nil {
			n.Errorf("before the first Apply: %v", got)
		}
		held := func(writes bool) {
			n.Helper()
			all := n.backend.Rules()
			if len(all) != 6 {
				n.Fatalf("%v", all)
			}
			for _, of := range all {
				want := 0
				for _, chain := range ownChains[of.Table] {
					want += len(rulesOf(n.rules(of.Family).Table(of.Table).Chain(chain)))
				}
				if of.Held != want || want == 0 || (of.Written > 0) != writes {
					n.Errorf("%+v, the kernel holds %d", of, want)
				}
			}
		}
		n.apply(dualStack(), false)
		held(true)
		n.apply(dualStack(), false)
		held(false)
		n.do(n.backend.Cleanup)
		if got := n.backend.Rules(); got != nil {
			n.Errorf("after Cleanup: %v", got)
		}
	})
}

// What a rule has counted is not forgotten when it is written anew, by us or by others.
func TestPacketsOnlyGrow(t *testing.T) {
	eachVariant(t, func(n *node) {
		want := func(when string, packets int) {
			n.Helper()
			n.do(func(ctx context.Context) error {
				got, err := n.backend.Packets(ctx)
				if (got.Invalid == nil) != (packets < 0) || got.Invalid != nil && *got.Invalid != uint64(packets) {
					n.Errorf("%s: %v, want %d", when, got.Invalid, packets)
				}
				return err
			})
		}
		want("before the first Apply", -1)
		n.apply(dualStack(), false)
		want("nothing happened", 0)
		counted := func(packets string) {
			n.Helper()
			text := ":KUBE-FORWARD - [0:0]\n"
			for i, r := range n.rules(model.IPv4).Table("filter").Chain(chainForwarding).Rules {
				counters := "[0:0] "
				if i == 0 {
					counters = "[" + packets + ":0] "
				}
				text += counters + r.Line(chainForwarding) + "\n"
			}
			cmd := n.ns.Command(n.Context(), "sh", "-c", "iptables"+map[bool]string{true: "-nft", false: "-legacy"}[n.tells()]+"-restore --noflush --counters")
			cmd.Stdin = strings.NewReader("*filter\n" + text + "COMMIT\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				n.Fatalf("%v: %s", err, out)
			}
		}
		counted("7")
		want("packets were counted", 7)
		counted("2")
		want("somebody set it back", 9)
		other := DefaultOptions()
		other.MasqueradeBit = 15
		r := dualStack()
		for _, f := range r.families {
			f.tables = (&compiler{f.family, &f.node, other, &f.marks}).tables(f.shape)
		}
		n.apply(r, true)
		want("written anew", 9)
		counted("11")
		want("and counted", 20)
	})
}

// tells reports whether the tables have a generation: they are those of nf_tables.
func (n *node) tells() (tells bool) {
	n.do(func(context.Context) (err error) {
		_, tells, err = n.deps.Tables[model.IPv4].Generation()
		return err
	})
	return tells
}
