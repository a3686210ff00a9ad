package iptexec

import (
	"slices"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

func TestPacketsOf(t *testing.T) {
	for rule, want := range map[string]uint64{
		"-A K -c 12 720 -j DROP\n": 12,
		"-A K -m conntrack --ctorigdst 127.0.0.0/8 -c 18446744073709551615 5\n": 1<<64 - 1,
		`-A K -m comment --comment "a -c 1 2 b" -c 3 4 -j ACCEPT` + "\n":        3,
		"-A K -j DROP\n": 0,
	} {
		if got := packetsOf(rule); got != want {
			t.Errorf("%s%d packets, want %d", rule, got, want)
		}
	}
}

// Both variants count; and a table that is not there is not made by asking.
func TestPackets(t *testing.T) {
	nstest.Require(t)
	for _, v := range []Variant{NFT, Legacy} {
		t.Run(string(v), func(t *testing.T) {
			ns, err := netns.New()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ns.Close() })
			tools, err := Find(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			err = ns.Do(func() error {
				if _, known := legacyTables(IPv4); v == Legacy && known {
					if got, err := tools.Packets(t.Context(), IPv4, "filter", "K"); got != nil || err != nil {
						t.Errorf("%v, %v of a table that is not there", got, err)
					}
					if legacyTable(IPv4, "filter") {
						t.Error("asking made the table")
					}
				}
				text := "*filter\n:K - [0:0]\n[7:70] -A K -s 192.0.2.1/32 -j DROP\n[0:0] -A K -j RETURN\nCOMMIT\n"
				if err := tools.Restore(t.Context(), IPv4, []byte(text), RestoreOptions{Counters: true}); err != nil {
					return err
				}
				got, err := tools.Packets(t.Context(), IPv4, "filter", "K")
				if !slices.Equal(got, []uint64{7, 0}) {
					t.Errorf("packets %v, want 7 and 0", got)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			err = ns.Do(func() error { _, err := tools.Packets(t.Context(), IPv4, "filter", "MISSING"); return err })
			if err == nil {
				t.Error("a chain that is not there is no error")
			}
		})
	}
}
