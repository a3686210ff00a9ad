package bench

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/testkit/crowd"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// kubeProxyMost keeps `make bench` short: the time for kube-proxy's layout grows with the square, to minutes.
var kubeProxyMost = flag.Int("kube-proxy", 10_000, "load no more Services than this in the layout of kube-proxy")

// needsBuffers is why a benchmark that writes to nf_tables needs root.
const needsBuffers = "the kernel limits an ordinary user's transactions (net.core.wmem_default)"

// crowds are what a table is filled with.
func crowds() []crowd.Crowd {
	return []crowd.Crowd{{Services: 1000, Endpoints: 10}, {Services: 10_000, Endpoints: 10}, {Services: 50_000, Endpoints: 2}}
}

// How often something is written. Of changes the median counts. Of whole tables it is the quickest, on both sides: the same
// bytes may take the kernel twice as long from one load to the next.
const (
	loads   = 8
	repeats = 101
	slow    = 5 // of a change in kube-proxy's layout, which takes a tenth of a second
)

// freeing is how long the kernel is given to free a table before the next one is written.
const freeing = 200 * time.Millisecond

// BenchmarkNFTables compares what Sluice takes for a table of nf_tables with the bare cost of its elements, and with
// the layout of kube-proxy.
func BenchmarkNFTables(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		t := &comparison{figures.Grid{Head: []string{
			"CPU ms", "Sluice", "bare", "÷ bare", "kube-proxy's layout", "÷ Sluice", "Sluice: allocations", "KiB allocated",
		}}}
		for _, c := range crowds() {
			t.compare(b, c)
		}
		publish(b, "nftables", fmt.Sprintf("%s.\n\n%s", machine(b), t))
	}
}

// comparison is the table of results.
type comparison struct{ figures.Grid }

// compare fills in the rows of one crowd.
func (t *comparison) compare(b *testing.B, c crowd.Crowd) {
	b.Helper()
	ours, raw := newSluice(b, c), newByHand(b, c)
	var whole, least cost
	var parts []part
	for i := range loads {
		ours.clear()
		raw.clear()
		time.Sleep(freeing)
		if i%2 == 0 {
			least = quicker(least, ours.deafly(raw.load))
		}
		if whole = quicker(whole, ours.load()); whole == ours.total() {
			parts = ours.parts
		}
		if i%2 != 0 {
			least = quicker(least, ours.deafly(raw.load))
		}
	}
	if c.Services == crowds()[0].Services {
		raw.hasElementsOf(ours)
	}
	proxy := newKubeProxy(b, c)
	label := func(what string) string { return fmt.Sprintf("%d × %d: %s", c.Services, c.Endpoints, what) }
	t.add(label("full load"), []cost{whole}, []cost{least}, proxy.load())
	for _, p := range parts {
		t.add(label("of that, "+p.what), []cost{p.cost}, nil, nil)
	}
	for _, ch := range changes() {
		var a, r []cost
		for i := range repeats {
			a, r = append(a, ours.change(ch, i)), append(r, raw.change(ch, i))
		}
		t.add(label(ch.what), a, r, proxy.change(ch))
	}
	t.add(label("start with nothing changed"), []cost{ours.restart()}, nil, nil)
	ours.close()
	raw.close()
	proxy.close()
}

// add adds a row. What has no costs has not been measured.
func (t *comparison) add(what string, ours, bare, proxy []cost) {
	cell := func(costs []cost) (cost, string) {
		if len(costs) == 0 {
			return cost{}, ""
		}
		m := median(costs)
		return m, milliseconds(m.cpu)
	}
	a, ourCell := cell(ours)
	r, bareCell := cell(bare)
	p, proxyCell := cell(proxy)
	t.Grid.Add(what, ourCell, bareCell, ratio(a.cpu, r.cpu), proxyCell, ratio(p.cpu, a.cpu), fmt.Sprint(a.allocs), fmt.Sprint(a.bytes>>10))
}

// change is something that happens to one Service. It is done to another one each time.
type change struct {
	what string
	kind kind
}

type kind int

const (
	changed kind = iota // its first endpoint becomes another
	added
	removed
)

// changes are those that are measured, in an order that they can be done in.
func changes() []change {
	return []change{{"one endpoint changed", changed}, {"one Service added", added}, {"one Service removed", removed}}
}

// of is the Service that a change is about: any of those that are there, or the next after them.
func (ch change) of(c crowd.Crowd, i int) int {
	if ch.kind == changed {
		return i * 7919 % c.Services
	}
	return c.Services + i
}

// emptyNode is a machine with nothing in its kernel, for a while.
func emptyNode(b *testing.B) (node *lab.Host, end func()) {
	b.Helper()
	l, err := lab.Up(lab.Topology{Node: lab.Machine{Name: "node", Addresses: lab.Reference().Node.Addresses[:1]}})
	if err != nil {
		b.Fatal(err)
	}
	return l.Node(), func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	}
}
