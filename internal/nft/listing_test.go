package nft_test

import (
	"bytes"
	"errors"
	"iter"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/nft"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// listing is a table as nft lists it.
const listing = `table inet sluice {
	comment "Services"
	map services4 {
		type ipv4_addr . inet_proto . inet_service : classid
		size 1024
		comment "frontends"
		elements = { 10.96.0.10 . tcp . 80 comment "default/web:http" : 2:a014,
			     10.96.0.11 . sctp . 80 : 2:a015 }
	}

	map endpoints6 {
		typeof meta priority . numgen random mod 2 : ip6 daddr . th dport
		elements = { 2:a000 . 0 : fd00::1 . 8080 }
	}

	set seen {
		type ipv4_addr
		size 65536
		flags dynamic,timeout
		counter
		timeout 1d12h
	}

	set allowed {
		type ipv4_addr . inet_service
		flags interval
		elements = { 10.0.0.0/8 . 80,
			     10.0.0.1-10.0.0.20 . 81 }
	}

	map buckets {
		type classid : verdict
		elements = { 0:8 : goto random-2 }
	}

	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		meta nfproto ipv4 goto round-robin
	}

	chain filter-output {
		comment "refuses"
		type filter hook output priority -100; policy accept;
		ct state new jump round-robin comment "first packets"
	}

	chain round-robin {
		meta priority & 0:ffc vmap @buckets
	}

	chain random-2 {
	}
}
`

func table() (t nft.Table, sets []nft.Set, chains []nft.Chain, elements map[string][]nft.Element) {
	classid, port, addr := nft.Field{Type: nft.ClassID}, nft.Field{Type: nft.InetService}, nft.Field{Type: nft.IPv4Addr}
	sets = []nft.Set{
		{Name: "services4", Key: []nft.Field{addr, {Type: nft.InetProto}, port}, Data: []nft.Field{classid}, Size: 1024, Comment: "frontends"},
		{Name: "endpoints6", Key: []nft.Field{classid, {Type: nft.Integer, Like: nft.Numgen{Mod: 2}}}, Data: []nft.Field{{Type: nft.IPv6Addr}, port}},
		{Name: "seen", Key: []nft.Field{addr}, Dynamic: true, Size: 65536, Timeout: 36 * time.Hour, Counter: true},
		{Name: "allowed", Key: []nft.Field{addr, port}, Interval: true},
		{Name: "buckets", Key: []nft.Field{classid}, Verdicts: true},
	}
	to := nft.Verdict{Kind: nft.Goto, Chain: "round-robin"}
	elements = map[string][]nft.Element{
		"services4": {
			{Key: v().Addr(ip("10.96.0.10")).Proto(6).Port(80), Data: v().Uint32(0x2a014), Comment: "default/web:http"},
			{Key: v().Addr(ip("10.96.0.11")).Proto(132).Port(80), Data: v().Uint32(0x2a015)},
		},
		"endpoints6": {{Key: v().Uint32(0x2a000).Uint32(0), Data: v().Addr(ip("fd00::1")).Port(8080)}},
		"allowed": {
			{Key: v().Addr(ip("10.0.0.0")).Port(80), End: v().Addr(ip("10.255.255.255")).Port(80)},
			{Key: v().Addr(ip("10.0.0.1")).Port(81), End: v().Addr(ip("10.0.0.20")).Port(81)},
		},
		"buckets": {{Key: v().Uint32(8), Verdict: nft.Verdict{Kind: nft.Goto, Chain: "random-2"}}},
	}
	isIPv4 := nft.Is{Left: nft.NFProto, Right: v().Proto(nft.ProtoIPv4)}
	isNew := nft.HasBits{Left: nft.CTState, Bits: nft.StateNew}
	bucket := nft.Bits{Of: nft.Priority, Op: nft.And, By: 0xffc}
	chains = []nft.Chain{
		{
			Name:  "nat-prerouting",
			Base:  &nft.Base{Type: nft.NAT, Hook: nft.Prerouting, Priority: nft.PriorityDstNAT},
			Rules: []nft.Rule{{Statements: []nft.Statement{isIPv4, to}}},
		},
		{
			Name: "filter-output", Comment: "refuses",
			Base:  &nft.Base{Type: nft.Filter, Hook: nft.Output, Priority: -100},
			Rules: []nft.Rule{{Statements: []nft.Statement{isNew, nft.Verdict{Kind: nft.Jump, Chain: "round-robin"}}, Comment: "first packets"}},
		},
		{Name: "round-robin", Rules: []nft.Rule{{Statements: []nft.Statement{nft.Vmap{Key: bucket, Map: "buckets"}}}}},
		{Name: "random-2"},
	}
	return nft.Table{Name: "sluice", Comment: "Services"}, sets, chains, elements
}

func pointers(elements map[string][]nft.Element) func(set string) iter.Seq[*nft.Element] {
	return func(set string) iter.Seq[*nft.Element] {
		return func(yield func(*nft.Element) bool) {
			for i := range elements[set] {
				if !yield(&elements[set][i]) {
					return
				}
			}
		}
	}
}

func TestWrite(t *testing.T) {
	tab, sets, chains, elements := table()
	var b bytes.Buffer
	if err := tab.Write(&b, sets, chains, pointers(elements)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(listing, b.String()); d != "" {
		t.Error(d)
	}
}

// nft lists what it reads as we wrote it.
func TestListing(t *testing.T) {
	nstest.Require(t)
	nftables(t, listing, "-f", "-")
	defer nftables(t, "", "delete", "table", "inet", "sluice")
	if d := cmp.Diff(listing, nftables(t, "", "list", "table", "inet", "sluice")); d != "" {
		t.Error(d)
	}
}

func nftables(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nft", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("nft %s (Debian package nftables): %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

func TestWriteWithoutElements(t *testing.T) {
	tab, sets, _, _ := table()
	var b strings.Builder
	if err := tab.Write(&b, sets[2:3], nil, nil); err != nil {
		t.Fatal(err)
	}
	want := "table inet sluice {\n\tcomment \"Services\"\n\tset seen {\n\t\ttype ipv4_addr\n\t\tsize 65536\n\t\tflags dynamic,timeout\n\t\tcounter\n\t\ttimeout 1d12h\n\t}\n}\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	tab, sets, chains, elements := table()
	if err := tab.Write(full{}, slices.Concat(sets, sets), chains, pointers(elements)); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}
