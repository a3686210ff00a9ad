package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"sluice/internal/config"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft/wire"
)

// hasTable reports whether a kernel has a table of nf_tables.
func (n *node) hasTable(name string) bool {
	n.t.Helper()
	conn, err := nfnl.Open()
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	found := false
	kind, request := wire.ListTables(wire.FamilyInet)
	for err = nfnl.ErrInterrupted; errors.Is(err, nfnl.ErrInterrupted); { // the daemon writes meanwhile
		found = false
		err = conn.Dump(n.t.Context(), kind, request, func(_ uint16, data []byte) error {
			table, err := wire.DecodeTable(data)
			found = found || table.Name == name
			return err
		})
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return found
}

// A switch of mode leaves nothing of the old one, and takes nothing away before the new one stands.
func TestModesTakeOverFromEachOther(t *testing.T) {
	n := newNode(t)
	ours := func() bool { return n.hasTable("sluice") }
	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.5:53"))
	n.start()
	n.eventually("iptables has rules", n.has("--to-destination 10.244.2.5:53"))
	n.stop()

	n.configure(config.ModeNFTables)
	before := len(n.said())
	n.start()
	n.eventually("there is a table", ours)
	n.eventually("the chains are gone", func() bool { return !n.has("KUBE-")() })
	n.stop()
	said := n.said()[before:]
	stands, goes := strings.Index(said, "rules written"), strings.Index(said, "removed what another proxy or mode left")
	if stands < 0 || goes < stands {
		t.Error("the old rules went before the new ones stood")
	}

	n.configure(config.ModeIPTables)
	n.start()
	n.eventually("iptables has rules again", n.has("--to-destination 10.244.2.5:53"))
	n.eventually("the table is gone", func() bool { return !ours() })
	n.stop()
	if !n.has("--to-destination 10.244.2.5:53")() {
		t.Error("it removed its own rules")
	}
}

// An earlier proxy's chains in the other variant of iptables go as well.
func TestTakesOverFromTheOtherVariant(t *testing.T) {
	n := newNode(t)
	tools, err := iptexec.Find(t.Context(), otherVariant(t))
	if errors.Is(err, iptexec.ErrNotInstalled) {
		t.Skip("needs both variants of iptables, as Debian's package has them:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := func() string {
		text, err := tools.Save(t.Context(), iptexec.IPv4, "nat")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const former = "*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\n:MINE - [0:0]\nCOMMIT\n"
	if err := tools.Restore(t.Context(), iptexec.IPv4, []byte(former), iptexec.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tools.Restore(context.Background(), iptexec.IPv4, []byte("*nat\n-X MINE\nCOMMIT\n"), iptexec.RestoreOptions{}); err != nil {
			t.Error(err)
		}
	})
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("the other variant's chain is gone", func() bool { return !strings.Contains(other(), "KUBE-SERVICES") })
	n.stop()
	if !strings.Contains(other(), "MINE") || !n.has("--to-destination 10.244.2.5:53")() {
		t.Error("it removed more than that")
	}
}

func otherVariant(t *testing.T) iptexec.Variant {
	t.Helper()
	tools, err := iptexec.Choose(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if tools.Variant == iptexec.NFT {
		return iptexec.Legacy
	}
	return iptexec.NFT
}

// No program is needed, nor missed, nor run where there is nothing for it to do.
func TestRunsWithAnEmptyPath(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	t.Run("", func(t *testing.T) {
		t.Setenv("PATH", "")
		n.start()
		n.eventually("there is a table", func() bool { return n.hasTable("sluice") })
		n.eventually("it is all done", func() bool {
			outcome, err := Status(StatusOptions{Format: Text}, &bytes.Buffer{})
			return err == nil && outcome == Good
		})
		n.stop()
	})
	if said := n.said(); strings.Contains(said, "iptables") || strings.Contains(said, "level=ERROR") {
		t.Error("it missed something")
	}
}
