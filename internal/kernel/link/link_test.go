package link_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sluice/internal/kernel/link"
	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// TestBridgedNode wires two pods to the bridge of a node and a client to the node by a veth pair, as the lab does,
// and sends bytes from the client to each pod, over both families.
func TestBridgedNode(t *testing.T) {
	nstest.Require(t)
	node, nodeNS := newHandle(t)
	must(t, node.AddBridge("br0"))
	must(t, node.AddAddress("br0", netip.MustParsePrefix("10.244.1.1/24")))
	must(t, node.AddAddress("br0", netip.MustParsePrefix("fd00:10:244:1::1/64")))
	must(t, node.Up("br0"))
	for _, pod := range []string{"2", "3"} {
		h, ns := newHandle(t)
		must(t, node.AddVeth("pod"+pod, ns.Fd(), "tmp0"))
		must(t, node.Attach("pod"+pod, "br0"))
		must(t, node.Hairpin("pod"+pod))
		must(t, node.Up("pod"+pod))
		must(t, h.Rename("tmp0", "eth0"))
		must(t, h.AddAddress("eth0", netip.MustParsePrefix("10.244.1."+pod+"/24")))
		must(t, h.AddAddress("eth0", netip.MustParsePrefix("fd00:10:244:1::"+pod+"/64")))
		must(t, h.Up("eth0"))
		must(t, h.AddRoute(link.Route{To: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.244.1.1")}))
		must(t, h.AddRoute(link.Route{To: netip.MustParsePrefix("::/0"), Via: netip.MustParseAddr("fd00:10:244:1::1")}))
		must(t, h.Settle(t.Context()))
		serve(t, ns, pod)
	}
	must(t, node.Settle(t.Context()))
	client, clientNS := newHandle(t)
	must(t, node.AddVeth("out", clientNS.Fd(), "eth0"))
	must(t, node.Up("out"))
	must(t, client.Up("eth0"))
	must(t, node.AddRoute(link.Route{To: netip.MustParsePrefix("192.0.2.9/32"), Interface: "out"}))
	must(t, client.AddAddress("eth0", netip.MustParsePrefix("192.0.2.9/32")))
	must(t, client.AddRoute(link.Route{To: netip.MustParsePrefix("10.244.1.1/32"), Interface: "eth0"}))

	if got := fetch(t, clientNS, "10.244.1.1:80"); got != "" {
		t.Errorf("the node, which serves nothing, answers %q", got)
	}
	for _, pod := range []string{"2", "3"} {
		if got := fetch(t, nodeNS, "10.244.1."+pod+":80"); got != pod {
			t.Errorf("pod %s over IPv4: got %q", pod, got)
		}
		if got := fetch(t, nodeNS, "[fd00:10:244:1::"+pod+"]:80"); got != pod {
			t.Errorf("pod %s over IPv6: got %q", pod, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	nstest.Require(t)
	h, _ := newHandle(t)
	must(t, h.AddBridge("br0"))
	prefix := netip.MustParsePrefix("fd00::5/64")
	must(t, h.AddAddress("br0", prefix))
	must(t, h.AddAddress("br0", prefix)) // again is success
	got, err := h.Addresses()
	must(t, err)
	want := []link.Address{
		{Prefix: netip.MustParsePrefix("127.0.0.1/8"), Interface: "lo", Loopback: true},
		{Prefix: netip.MustParsePrefix("::1/128"), Interface: "lo", Loopback: true},
		{Prefix: prefix, Interface: "br0"},
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%+v is missing in %+v", w, got)
		}
	}
	must(t, h.DeleteAddress("br0", prefix))
	got, err = h.Addresses()
	must(t, err)
	if slices.Contains(got, want[2]) {
		t.Errorf("%+v is there after its deletion", want[2])
	}
}

// An address is one that connections can be made to when the handle has settled, which it is not at once.
func TestSettle(t *testing.T) {
	nstest.Require(t)
	for range 30 {
		h, ns := newHandle(t)
		must(t, h.AddBridge("br0"))
		must(t, h.Up("br0"))
		must(t, h.AddAddress("br0", netip.MustParsePrefix("fd00::5/128")))
		must(t, h.Settle(t.Context()))
		serve(t, ns, "here")
		if got := fetch(t, ns, "[fd00::5]:80"); got != "here" {
			t.Fatalf("the address answers %q", got)
		}
	}
}

func TestWatchAddresses(t *testing.T) {
	nstest.Require(t)
	h, _ := newHandle(t)
	must(t, h.AddBridge("br0"))
	must(t, h.AddBridge("br1"))
	ctx, cancel := context.WithCancel(context.Background())
	changes, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.WatchAddresses(ctx, "br1", func() { changes <- struct{}{} }) }()
	<-changes // the first call: subscribed
	must(t, h.AddAddress("br1", netip.MustParsePrefix("192.0.2.9/24")))
	select {
	case <-changes:
		t.Error("a change of br1 is told")
	case <-time.After(100 * time.Millisecond):
	}
	must(t, h.AddAddress("br0", netip.MustParsePrefix("192.0.2.1/24")))
	<-changes
	must(t, h.DeleteAddress("br0", netip.MustParsePrefix("192.0.2.1/24")))
	<-changes
	cancel()
	must(t, <-ended)
}

// Changes of one interface are told, also that it goes with its addresses and comes anew.
func TestWatchAddressesOf(t *testing.T) {
	nstest.Require(t)
	h, _ := newHandle(t)
	must(t, h.AddBridge("br0"))
	ctx, cancel := context.WithCancel(context.Background())
	changes, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.WatchAddressesOf(ctx, "br1", func() { changes <- struct{}{} }) }()
	<-changes // the first call: subscribed
	must(t, h.AddAddress("br0", netip.MustParsePrefix("192.0.2.1/24")))
	select {
	case <-changes:
		t.Error("a change of br0 is told")
	case <-time.After(100 * time.Millisecond):
	}
	for range 2 {
		must(t, h.AddBridge("br1"))
		must(t, h.AddAddress("br1", netip.MustParsePrefix("192.0.2.9/32")))
		<-changes
		must(t, h.Delete("br1"))
		<-changes
	}
	cancel()
	must(t, <-ended)
}

// Whoever reads all addresses at each call knows all of them in the end, of which there are far fewer than changes.
func TestWatchManyAddresses(t *testing.T) {
	nstest.Require(t)
	h, _ := newHandle(t)
	must(t, h.AddBridge("br0"))
	ctx, cancel := context.WithCancel(context.Background())
	known, ended := make(chan int, 10_000), make(chan error, 1)
	go func() {
		ended <- h.WatchAddresses(ctx, "", func() {
			all, err := h.Addresses()
			if err != nil && !errors.Is(err, link.ErrInterrupted) {
				t.Error(err)
			}
			known <- len(all)
		})
	}()
	before := <-known
	const many = 1000
	prefix := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(i%250 + 1)}), 32)
	}
	calls := 0
	until := func(want int) {
		for n := -1; n != want; n = <-known {
			calls++
		}
	}
	for i := range many {
		must(t, h.AddAddress("br0", prefix(i)))
	}
	until(before + many)
	for i := range many {
		must(t, h.DeleteAddress("br0", prefix(i)))
	}
	until(before)
	t.Logf("%d calls for %d changes", calls, 2*many)
	cancel()
	must(t, <-ended)
}

func TestErrorsNameTheInterface(t *testing.T) {
	nstest.Require(t)
	h, _ := newHandle(t)
	err := h.Up("nosuch0")
	if !errors.Is(err, link.ErrNotFound) || err.Error() != "set nosuch0 up: nosuch0: no such interface" {
		t.Errorf("got %v", err)
	}
}

func newHandle(t *testing.T) (*link.Handle, *netns.NS) {
	t.Helper()
	ns, err := netns.New()
	must(t, err)
	h, err := link.Open(ns.Fd())
	must(t, err)
	t.Cleanup(func() { h.Close(); _ = ns.Close() })
	return h, ns
}

// serve answers each connection to port 80 in the namespace with text.
func serve(t *testing.T, ns *netns.NS, text string) {
	t.Helper()
	var l net.Listener
	must(t, ns.Do(func() (err error) { l, err = net.Listen("tcp", ":80"); return err }))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	}()
}

// fetch returns what a server says, "" when it refuses.
func fetch(t *testing.T, ns *netns.NS, addr string) string {
	t.Helper()
	var got bytes.Buffer
	_ = ns.Do(func() error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_, err = io.Copy(&got, c)
		return err
	})
	return got.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
