package conntrack_test

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice/internal/kernel/conntrack"
	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func TestListAndDelete(t *testing.T) {
	conn := open(t)
	translated := flow("10.0.0.9:4000", "10.96.0.10:53", "10.244.1.5:5353", "10.0.0.9:4000")
	unanswered := flow("[fd00::9]:4000", "[fd00:96::a]:53", "[fd00:96::a]:53", "[fd00::9]:4000")
	unanswered.Unreplied = true
	tcp := flow("10.0.0.9:4000", "10.96.0.10:53", "10.244.1.5:5353", "10.0.0.9:4000")
	tcp.Protocol = 6
	tcp.Unreplied = true
	for _, f := range []conntrack.Flow{translated, unanswered, tcp} {
		if err := conn.Create(f, 600); err != nil {
			t.Fatal(err)
		}
	}
	flows := list(t, conn)
	want := []conntrack.Flow{translated, unanswered}
	if diff := cmp.Diff(want, flows, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Fatalf("flows (-want +got):\n%s", diff)
	}
	sources := map[netip.Addr]bool{netip.MustParseAddr("10.0.0.9"): true, netip.MustParseAddr("fd00::9"): true}
	if got, err := conn.Sources(); err != nil || !maps.Equal(got, sources) {
		t.Errorf("sources %v, %v, want %v", got, err, sources)
	}
	for i, wantDeleted := range []int{1, 0} { // the second time it is gone, which is success
		if n, err := conn.Delete(flows[:1]); n != wantDeleted || err != nil {
			t.Errorf("deletion %d: got %d, %v", i, n, err)
		}
	}
	if left := list(t, conn); !slices.Equal(left, flows[1:]) {
		t.Errorf("left: %v, want %v", left, flows[1:])
	}
}

func TestByReply(t *testing.T) {
	conn := open(t)
	for _, f := range []conntrack.Flow{
		flow("10.0.0.9:4000", "10.96.0.10:53", "192.168.10.11:10053", "10.0.0.9:4000"),
		flow("[fd00::9]:4000", "[fd00:96::a]:53", "[fd00:10::11]:10053", "[fd00::9]:61000"),
		flow("10.0.0.9:4001", "192.168.10.11:10053", "192.168.10.11:10053", "10.0.0.9:4001"),
	} {
		if err := conn.Create(f, 600); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := conn.ByReply(17, f.ReplyFrom, f.ReplyTo); got != f || !ok || err != nil {
			t.Errorf("got %s, %v, %v; want %s", got, ok, err, f)
		}
		if got, ok, err := conn.ByReply(6, f.ReplyFrom, f.ReplyTo); ok || err != nil {
			t.Errorf("by TCP: got %s, %v, %v; want none", got, ok, err)
		}
	}
}

func TestString(t *testing.T) {
	f := flow("10.0.0.9:4000", "10.96.0.10:53", "10.244.1.5:5353", "10.0.0.9:4000")
	f.Unreplied = true
	want := "protocol 17 src=10.0.0.9:4000 dst=10.96.0.10:53 [UNREPLIED] src=10.244.1.5:5353 dst=10.0.0.9:4000 mark=5"
	if got := f.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func flow(source, dest, replyFrom, replyTo string) conntrack.Flow {
	return conntrack.Flow{
		Protocol: 17, Mark: 5,
		Source: netip.MustParseAddrPort(source), Dest: netip.MustParseAddrPort(dest),
		ReplyFrom: netip.MustParseAddrPort(replyFrom), ReplyTo: netip.MustParseAddrPort(replyTo),
	}
}

func list(t *testing.T, conn *conntrack.Conn) []conntrack.Flow {
	t.Helper()
	flows, err := conn.UDP()
	if err != nil {
		t.Fatal(err)
	}
	return flows
}

// open returns a connection to the table of a new namespace.
func open(t *testing.T) *conntrack.Conn {
	t.Helper()
	nstest.Require(t)
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	var conn *conntrack.Conn
	if err := ns.Do(func() (err error) { conn, err = conntrack.Open(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
