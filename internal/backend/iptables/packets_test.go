package iptables

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

// wantPackets has a Backend tell so many packets, or that nobody counts them: -1.
func wantPackets(t testing.TB, name string, b *Backend, invalid, localhost int) {
	t.Helper()
	p, err := b.Packets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, of := range map[string]struct {
		got  *uint64
		want int
	}{"invalid": {p.Invalid, invalid}, "localhost": {p.Localhost, localhost}} {
		switch {
		case of.got == nil && of.want >= 0:
			t.Errorf("%s: %s packets are not counted, want %d", name, what, of.want)
		case of.got != nil && int(*of.got) != of.want:
			t.Errorf("%s: %d %s packets, want %d", name, *of.got, what, of.want)
		}
	}
}

func webNodePort(opts Options) *Ruleset {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	s.Type, s.Ports[0].NodePort = model.NodePort, 30080
	return Compile(planOf(s, sl), opts)
}

// Invalid packets, and connections to a node port on localhost, are counted by the kernel: each once, and no others.
func TestKernelCountsPackets(t *testing.T) {
	nstest.Require(t)
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		t.Run(string(v), func(t *testing.T) {
			l, err := lab.Up(lab.Reference())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			if _, err := l.Host("pods-a").ServeAll(model.TCP, 8080); err != nil {
				t.Fatal(err)
			}
			var b *Backend
			at := func(h *lab.Host, f func() error) {
				t.Helper()
				if err := h.Do(f); err != nil {
					t.Fatal(err)
				}
			}
			write := func(opts Options) {
				t.Helper()
				at(l.Node(), func() error {
					_, err := b.Apply(t.Context(), webNodePort(opts), backend.Request{Recheck: true})
					return err
				})
			}
			want := func(name string, invalid, localhost int) {
				t.Helper()
				at(l.Node(), func() error { wantPackets(t, name, b, invalid, localhost); return nil })
			}
			at(l.Node(), func() error {
				deps, _, err := System(t.Context(), v)
				deps.RouteLocalnet = func(bool) error {
					_, err := sysctl.Set("net.ipv4.conf.all.route_localnet", "1")
					return err
				}
				b = New(DefaultOptions(), deps)
				return err
			})
			traffic := func() {
				t.Helper()
				at(l.Host("pods-a"), func() error { return sendReset("10.244.1.50", "10.244.2.5") })
				at(l.Host("pods-a"), func() error { return sendReset("10.244.1.50", "10.244.2.6") })
				for _, dial := range []struct {
					from *lab.Host
					lab.Dial
				}{
					{l.Node(), lab.Dial{To: netip.MustParseAddrPort("127.0.0.1:30080")}},
					{l.Node(), lab.Dial{To: netip.MustParseAddrPort("192.168.10.11:30080")}},
					{l.Host("clients"), lab.Dial{From: netip.MustParseAddr("203.0.113.7"), To: netip.MustParseAddrPort("192.168.10.11:30080")}},
					{l.Host("pods-a"), lab.Dial{From: netip.MustParseAddr("10.244.1.50"), To: netip.MustParseAddrPort("10.96.0.10:80")}},
				} {
					dial.Protocol = model.TCP
					if got, err := dial.from.Spread(dial.Dial, 3); err != nil || got.Forwarded() != 3 {
						t.Fatalf("%v: %+v, %v", dial.To, got, err)
					}
				}
			}
			want("before the first Apply", -1, -1)
			write(DefaultOptions())
			want("nothing happened", 0, 0)
			traffic()
			want("the first time", 2, 3)
			traffic()
			want("again", 4, 6)
			at(l.Node(), func() error {
				return b.deps.Tables[model.IPv4].Restore(t.Context(), []byte("*filter\n-F KUBE-FORWARD\nCOMMIT\n*nat\n-F KUBE-POSTROUTING\nCOMMIT\n"))
			})
			want("somebody took the rules away", 4, 6)
			write(DefaultOptions())
			want("they are back", 4, 6)
			traffic()
			want("they go on", 6, 9)
			write(Options{MasqueradeBit: 15, TCPBeLiberal: true})
			traffic()
			want("other options", 6, 12)
			at(l.Node(), func() error { return b.Cleanup(t.Context()) })
			want("after Cleanup", 6, 12)
		})
	}
}

// sendReset sends a TCP reset that belongs to no connection.
func sendReset(from, to string) error {
	conn, err := net.DialIP("ip4:6", &net.IPAddr{IP: net.ParseIP(from)}, &net.IPAddr{IP: net.ParseIP(to)})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte{0x99, 0x99, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 1 << 2, 0, 0, 0, 0, 0, 0})
	return errors.Join(err, conn.Close())
}

// A counter that begins at 0 again, for whatever reason, does not fall; and a chain that is being written, or is
// another's, is not counted.
func TestPacketsOnlyGrow(t *testing.T) {
	b, fakes := newTestBackend(false)
	set := func(n uint64) { fakes[0].packets, fakes[1].packets = n, n }
	r := webNodePort(DefaultOptions())
	write := func() {
		t.Helper()
		if _, err := b.Apply(t.Context(), r, backend.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	write()
	set(5)
	wantPackets(t, "both families", b, 10, 5) // no node ports at ::1
	set(3)
	wantPackets(t, "somebody set them to 0", b, 16, 8)
	for f := range fakes {
		fakes[f].remove(Filter, chainForwarding)
		fakes[f].remove(Nat, chainMasquerade)
	}
	set(100)
	wantPackets(t, "chains of others", b, 16, 8)
	set(4)
	write()
	wantPackets(t, "written anew", b, 24, 12)

	fakes[0].remove(Filter, chainForwarding)
	fakes[0].failWrite = errors.New("no")
	if _, err := b.Apply(t.Context(), r, backend.Request{}); err == nil {
		t.Fatal("want a failure")
	}
	wantPackets(t, "a failure leaves the rules unknown", b, 24, 12)
	fakes[0].contents[Filter][chainForwarding] = invalidRule(model.IPv4) + lines(r.families[0].chains[Filter][chainForwarding])[1] + "\n" + lines(r.families[0].chains[Filter][chainForwarding])[2] + "\n"
	*fakes[0].generation++
	write()
	wantPackets(t, "nothing was written after all", b, 24, 12)

	fakes[0].fail = errors.New("cannot be read")
	if _, err := b.Packets(t.Context()); err == nil {
		t.Error("want the error")
	}
}

// While a chain is written its counters are not read, and those that were read across it do not count.
func TestPacketsAreNotReadAcrossAWrite(t *testing.T) {
	b, fakes := newTestBackend(false)
	if _, err := b.Apply(t.Context(), webNodePort(DefaultOptions()), backend.Request{}); err != nil {
		t.Fatal(err)
	}
	g := b.gauges[model.IPv4]
	d := delta{Filter: {write: []chain{{name: chainForwarding}}}}
	fakes[0].packets = 7
	err := g.writing(d, func() error {
		return g.read(t.Context(), meterInvalid)
	})
	if err != nil || g.counts[meterInvalid].known {
		t.Errorf("error %v, counted %+v", err, g.counts[meterInvalid])
	}
	g.tables = writtenMeanwhile{fakes[0], func() error { return g.writing(d, func() error { return nil }) }}
	if err := g.read(t.Context(), meterInvalid); err != nil || g.counts[meterInvalid].known {
		t.Errorf("across: error %v, counted %+v", err, g.counts[meterInvalid])
	}
	g.tables = fakes[0]
	if err := g.read(t.Context(), meterInvalid); err != nil || g.counts[meterInvalid].last != 7 {
		t.Errorf("afterwards: error %v, counted %+v", err, g.counts[meterInvalid])
	}
}

// Who asks waits for no Apply, and may ask while there is one.
func TestScrapeDuringApply(t *testing.T) {
	b, _ := newTestBackend(false)
	if _, err := b.Apply(t.Context(), webNodePort(DefaultOptions()), backend.Request{}); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	wantPackets(t, "while the Backend is held", b, 0, 0)
	if len(b.Rules()) != 4 {
		t.Errorf("rules %v, want those of two tables in two families", b.Rules())
	}
	b.mu.Unlock()

	eachVariant(t, func(n *node) {
		ask := func(when string) {
			n.do(func(context.Context) error { wantPackets(n, when, n.backend, 0, 0); return nil })
			n.backend.Rules()
		}
		n.apply(webNodePort(DefaultOptions()), false)
		ask("before")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range 6 {
				n.apply(webNodePort(Options{MasqueradeBit: 14 + i}), false)
			}
		}()
		defer func() { <-ended }()
		for going := true; going; {
			select {
			case <-ended:
				going = false
			default:
			}
			ask("while rules are written")
		}
	})
}

// writtenMeanwhile are Tables that somebody writes while packets are counted.
type writtenMeanwhile struct {
	Tables
	write func() error
}

func (w writtenMeanwhile) Packets(ctx context.Context, t Table, chain string) ([]uint64, error) {
	counts, err := w.Tables.Packets(ctx, t, chain)
	return counts, errors.Join(err, w.write())
}
