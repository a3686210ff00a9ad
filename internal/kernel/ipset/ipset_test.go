package ipset

import (
	"errors"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func open(t *testing.T) *Conn {
	t.Helper()
	nstest.Require(t)
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sets, err := c.List()
		for _, s := range sets {
			err = errors.Join(err, c.Destroy(s.Name))
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// samples are a set of each type and family.
var samples = []Set{
	{Header: Header{Name: "A", Type: HashIP, HashSize: 1024, MaxElem: 65536}, Entries: []Item{{Entry: Entry{Addr: addr("10.0.0.1")}}}},
	{Header: Header{Name: "A6", Type: HashIP, IPv6: true, HashSize: 64, MaxElem: 100}, Entries: []Item{{Entry: Entry{Addr: addr("fd00::1")}}}},
	{Header: Header{Name: "B", Type: HashIPPort, HashSize: 2048, MaxElem: 70000}, Entries: []Item{
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80}},
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 17, Port: 53}},
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 132, Port: 65535}},
	}},
	{Header: Header{Name: "B6", Type: HashIPPort, IPv6: true, HashSize: 1024, MaxElem: 65536, Marks: true}, Entries: []Item{
		{Entry: Entry{Addr: addr("fd00::1"), Protocol: 6, Port: 80}, Mark: 0x12345678},
		{Entry: Entry{Addr: addr("fd00::2"), Protocol: 6, Port: 80}},
	}},
	{Header: Header{Name: "C", Type: HashIPPortIP, HashSize: 1024, MaxElem: 65536}, Entries: []Item{
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80, Net: prefix("10.0.0.2/32")}},
	}},
	{Header: Header{Name: "C6", Type: HashIPPortIP, IPv6: true, HashSize: 1024, MaxElem: 65536}, Entries: []Item{
		{Entry: Entry{Addr: addr("fd00::1"), Protocol: 132, Port: 80, Net: prefix("fd00::2/128")}},
	}},
	{Header: Header{Name: "D", Type: HashIPPortNet, HashSize: 1024, MaxElem: 65536}, Entries: []Item{
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80, Net: prefix("10.0.0.0/8")}},
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80, Net: prefix("10.1.2.3/32")}},
		{Entry: Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80, Net: prefix("10.1.0.0/16"), NoMatch: true}},
	}},
	{Header: Header{Name: "D6", Type: HashIPPortNet, IPv6: true, HashSize: 1024, MaxElem: 65536}, Entries: []Item{
		{Entry: Entry{Addr: addr("fd00::1"), Protocol: 17, Port: 80, Net: prefix("fd00::/64")}},
	}},
	{Header: Header{Name: "E", Type: BitmapPort}, Entries: []Item{{Entry: Entry{Port: 0}}, {Entry: Entry{Port: 30000}}, {Entry: Entry{Port: 65535}}}},
	{Header: Header{Name: "E-marks", Type: BitmapPort, Marks: true}, Entries: []Item{{Entry: Entry{Port: 30000}, Mark: 7}}},
}

func fill(t *testing.T, c *Conn, sets []Set) {
	t.Helper()
	for _, s := range sets {
		if err := errors.Join(c.Create(s.Header), c.Add(s.Name, s.Entries)); err != nil {
			t.Fatal(err)
		}
	}
}

var inAnyOrder = cmp.Options{
	cmpopts.SortSlices(func(a, b Item) bool { return a.String() < b.String() }),
	cmpopts.SortSlices(func(a, b Set) bool { return a.Name < b.Name }),
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(),
}

func TestWhatIsWrittenIsListed(t *testing.T) {
	c := open(t)
	fill(t, c, samples)
	got, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(samples, got, inAnyOrder); diff != "" {
		t.Errorf("(-written +listed):\n%s", diff)
	}
}

// The ipset program sees what was meant, and says entries as we do.
func TestProgramListsTheSame(t *testing.T) {
	c := open(t)
	fill(t, c, samples)
	out, err := exec.CommandContext(t.Context(), "ipset", "save").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		got = append(got, regexp.MustCompile(` (bucketsize|initval) \w+|\n`).ReplaceAllString(line, ""))
	}
	want := []string{
		"create A hash:ip family inet hashsize 1024 maxelem 65536",
		"create A6 hash:ip family inet6 hashsize 64 maxelem 100",
		"create B hash:ip,port family inet hashsize 2048 maxelem 70000",
		"create B6 hash:ip,port family inet6 hashsize 1024 maxelem 65536 skbinfo",
		"create C hash:ip,port,ip family inet hashsize 1024 maxelem 65536",
		"create C6 hash:ip,port,ip family inet6 hashsize 1024 maxelem 65536",
		"create D hash:ip,port,net family inet hashsize 1024 maxelem 65536",
		"create D6 hash:ip,port,net family inet6 hashsize 1024 maxelem 65536",
		"create E bitmap:port range 0-65535",
		"create E-marks bitmap:port range 0-65535 skbinfo",
	}
	for _, s := range samples {
		for _, i := range s.Entries {
			want = append(want, "add "+s.Name+" "+i.String())
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("(-want +program):\n%s", diff)
	}
}

// What kube-proxy makes with the program can be made again without an error, and the other way round.
func TestProgramAgreesOnHeaders(t *testing.T) {
	c := open(t)
	fill(t, c, samples)
	for _, args := range []string{
		"create A hash:ip family inet hashsize 1024 maxelem 65536 -exist",
		"create C6 hash:ip,port,ip family inet6 hashsize 1024 maxelem 65536 -exist",
		"create E bitmap:port range 0-65535 -exist",
		"create theirs hash:ip,port,net family inet hashsize 1024 maxelem 65536",
		"create counted hash:ip counters",
		"create some bitmap:port range 1-2",
	} {
		if out, err := exec.CommandContext(t.Context(), "ipset", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	if err := c.Create(Header{Name: "theirs", Type: HashIPPortNet, HashSize: 1024, MaxElem: 65536}); err != nil {
		t.Error(err)
	}
	sets, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		if want := s.Name == "counted" || s.Name == "some"; s.Other != want {
			t.Errorf("%+v: Other %v, want %v", s.Header, s.Other, want)
		}
	}
}

func TestManyEntries(t *testing.T) {
	c := open(t)
	const n = 5000
	h := Header{Name: "many", Type: HashIPPortIP, IPv6: true, MaxElem: n}
	var items []Item
	var entries []Entry
	a := addr("fd00::1")
	for range n {
		items = append(items, Item{Entry: Entry{Addr: a, Protocol: 6, Port: 8080, Net: netip.PrefixFrom(a, 128)}})
		entries = append(entries, items[len(items)-1].Entry)
		a = a.Next()
	}
	fill(t, c, []Set{{Header: h, Entries: items}})
	length := func() int {
		sets, err := c.List()
		if err != nil {
			t.Fatal(err)
		}
		if len(sets) != 1 {
			t.Fatalf("%d sets", len(sets))
		}
		return len(sets[0].Entries)
	}
	if got := length(); got != n {
		t.Errorf("%d entries, want %d", got, n)
	}
	more := slices.Clone(items[:300])
	for range n { // one might do, but Linux 6.1 counts by parts of a set, and takes some more
		more = append(more, Item{Entry: Entry{Addr: a, Protocol: 6, Port: 8080, Net: prefix("fd00::1/128")}})
		a = a.Next()
	}
	err := c.Add("many", more)
	var failed *Error
	full := func(i Item) bool { return failed.Entry == i.String() }
	if !errors.Is(err, ErrFull) || !errors.As(err, &failed) || !slices.ContainsFunc(more[300:], full) {
		t.Errorf("error %v, want a full set and the entry", err)
	}
	if err := c.Delete("many", entries[:n-1]); err != nil {
		t.Error(err)
	}
	for _, i := range more[300:] {
		entries = append(entries, i.Entry)
	}
	if err := c.Delete("many", entries); err != nil {
		t.Errorf("what is gone already: %v", err)
	}
	if got := length(); got != 0 {
		t.Errorf("%d entries are left", got)
	}
}

func TestMarkOfAnEntryChanges(t *testing.T) {
	c := open(t)
	e := Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80}
	fill(t, c, []Set{{Header: Header{Name: "M", Type: HashIPPort, Marks: true}, Entries: []Item{{e, 1}, {e, 2}}}})
	sets, err := c.List()
	if err != nil || len(sets) != 1 || !slices.Equal(sets[0].Entries, []Item{{e, 2}}) {
		t.Errorf("%+v, %v", sets, err)
	}
}

func TestSwap(t *testing.T) {
	c := open(t)
	small := Header{Name: "S", Type: HashIP, MaxElem: 1}
	fill(t, c, []Set{{Header: small, Entries: []Item{{Entry: Entry{Addr: addr("10.0.0.1")}}}}, {Header: Header{Name: "T", Type: HashIP, MaxElem: 5}}})
	if err := c.Swap("S", "T"); err != nil {
		t.Fatal(err)
	}
	sets, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		if s.Name == "S" && (s.MaxElem != 5 || len(s.Entries) != 0) {
			t.Errorf("%+v", s)
		}
	}
	fill(t, c, []Set{{Header: Header{Name: "E", Type: BitmapPort}}})
	if err := c.Swap("S", "E"); !errors.Is(err, ErrMismatch) {
		t.Errorf("error %v, want %v", err, ErrMismatch)
	}
}

func TestRefusals(t *testing.T) {
	c := open(t)
	fill(t, c, []Set{{Header: Header{Name: "A", Type: HashIP, MaxElem: 10}}})
	if out, err := exec.CommandContext(t.Context(), "iptables-nft", "-A", "INPUT", "-m", "set", "--match-set", "A", "dst").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ten := Item{Entry: Entry{Addr: addr("10.0.0.1")}}
	for _, tt := range []struct {
		err  error
		want error
		text string
	}{
		{c.Create(Header{Name: "A", Type: HashIP, MaxElem: 11}), ErrExists, "ipset: create A: "},
		{c.Create(Header{Name: "B", Type: "hash:nothing"}), ErrUnknownType, "ipset: create B: "},
		{c.Create(Header{Name: strings.Repeat("x", MaxName+1), Type: HashIP}), syscall.ENAMETOOLONG, "ipset: create xx"},
		{c.Destroy("A"), ErrInUse, "ipset: destroy A: "},
		{c.Add("none", []Item{ten}), syscall.ENOENT, "ipset: add to none: 10.0.0.1: "},
		{c.Swap("A", "none"), nil, "ipset: swap A: "},
		{c.Add("A", []Item{ten, {Entry: Entry{Addr: addr("fd00::1")}}}), nil, "ipset: add to A: fd00::1: "},
	} {
		if tt.want != nil && !errors.Is(tt.err, tt.want) || tt.err == nil || !strings.HasPrefix(tt.err.Error(), tt.text) {
			t.Errorf("error %v, want %q and %v", tt.err, tt.text, tt.want)
		}
	}
	if err := c.Destroy("none"); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	if sets, err := c.List(); err != nil || len(sets) != 1 || sets[0].References != 1 || len(sets[0].Entries) != 1 {
		t.Errorf("%+v, %v", sets, err)
	}
	if out, err := exec.CommandContext(t.Context(), "iptables-nft", "-F").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
