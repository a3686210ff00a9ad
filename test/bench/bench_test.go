package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"sluice/internal/cli"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/lab"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
	"sluice/test/churn"
)

var (
	services  = flag.Int("services", 5000, "how many Services")
	endpoints = flag.Int("endpoints", 10, "how many endpoints each has")
	update    = flag.Bool("update", false, "write the result into docs/benchmarks.md")
)

func TestMain(m *testing.M) {
	churn.Main()
	for as, be := range map[string]func(string) error{asAlone: beAlone, asClients: beClients} {
		what := os.Getenv(as)
		if what == "" {
			continue
		}
		if err := be(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	daemon.Main(m, cli.Main)
}

// BenchmarkSideBySide prints a table instead of figures of its own.
func BenchmarkSideBySide(b *testing.B) {
	nstest.Require(b)
	for b.Loop() {
		t := &table{}
		for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
			t.begin(v)
			bare(b, t)
			parts(b, t)
			whole(b, t)
		}
		publish(b, "iptables", fmt.Sprintf("%d Services with %d endpoints each; %s.\n\n%s", *services, *endpoints, machine(b), t))
	}
}

// quadratic are numbers of Services small enough for iptables-nft-restore --noflush, which takes a time that grows with
// the square unless it is told to read the whole table first.
var quadratic = []int{500, 1000}

// bare restores the rules into an empty kernel.
func bare(b *testing.B, t *table) {
	b.Helper()
	text := rules(b, *services)
	t.bare = t.add("bare iptables-restore", measure(b, func() error { return restore(b, t.variant, text, true) }))
	t.add("the same with --noflush (nft: and -S first)", measure(b, func() error { return restore(b, t.variant, text, false) }))
	if t.variant != iptexec.NFT {
		return
	}
	for _, n := range quadratic {
		few := rules(b, n)
		t.add(fmt.Sprintf("the same without -S, %d Services alone", n), measure(b, func() error {
			cmd := newNode(b).Command(context.Background(), "iptables-nft-restore", "--noflush")
			cmd.Stdin = bytes.NewReader(few)
			return cmd.Run()
		}))
	}
}

func restore(b *testing.B, v iptexec.Variant, text []byte, flush bool) error {
	b.Helper()
	return newNode(b).Do(func() error {
		tools, err := iptexec.Find(b.Context(), v)
		if err != nil {
			return err
		}
		return tools.Restore(b.Context(), iptexec.IPv4, text, iptexec.RestoreOptions{Flush: flush})
	})
}

// newNode is a machine with nothing in its kernel.
func newNode(b *testing.B) *lab.Host {
	b.Helper()
	node, end := emptyNode(b)
	b.Cleanup(end)
	return node
}
