package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/lab"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/crowd"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// BenchmarkFlush measures how long our table is gone after somebody flushes all rules.
func BenchmarkFlush(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		t := figures.Grid{Head: []string{"`nft flush ruleset`", "repaired after ms, median", "longest", "CPU ms of the daemon"}}
		for _, n := range []int{10, 5000} {
			d := newWatched(b, n)
			var costs []cost
			for range manySamples {
				costs = append(costs, d.flush(n))
				d.again() // whoever keeps changing what is Sluice's is given time
			}
			longest := slices.MaxFunc(costs, func(x, y cost) int { return int(x.wall - y.wall) })
			slices.SortFunc(costs, func(x, y cost) int { return int(x.wall - y.wall) })
			mid := costs[len(costs)/2]
			t.Add(fmt.Sprintf("%d Services × %d", n, *endpoints), milliseconds(mid.wall), milliseconds(longest.wall), milliseconds(mid.cpu))
			d.Stop()
		}
		publish(b, "flush", t.String())
	}
}

// newWatched is a daemon in mode nftables that has written so many Services.
func newWatched(b *testing.B, services int) *watched {
	b.Helper()
	d := &watched{B: b, folder: newFolder(b, services), node: newNode(b), flags: nftablesFlags()}
	d.start()
	d.rest()
	return d
}

// again makes it a daemon that has seen nothing yet.
func (d *watched) again() {
	d.Helper()
	d.Stop()
	d.start()
	d.rest()
}

// rest waits until the daemon has done nothing for a while.
func (d *watched) rest() {
	d.Helper()
	const quiet = 200 * time.Millisecond
	for before := time.Duration(-1); before != d.cpu(); time.Sleep(quiet) {
		before = d.cpu()
	}
}

// flush flushes all rules, and measures from the start of nft until the last Service is there again.
func (d *watched) flush(services int) (c cost) {
	d.Helper()
	conn := open(d.B, d.node)
	defer conn.Close()
	set := newBareSets(crowd.Crowd{}).services
	kind, last := wire.FindElement(bareTable, &set, frontend(services-1))
	there := func() bool {
		return conn.Get(d.Context(), kind, last, func(uint16, []byte) error { return nil }) == nil
	}
	if !there() {
		d.Fatal("the last Service is not in the kernel")
	}
	cpu, begin := d.cpu(), time.Now()
	if err := runNFT(d.node, "flush ruleset\n"); err != nil {
		d.Fatal(err)
	}
	for !there() {
		if time.Since(begin) > limit {
			d.Fatalf("the daemon does not repair:\n%s", d.Log())
		}
		time.Sleep(100 * time.Microsecond)
	}
	c.wall = time.Since(begin)
	d.rest()
	c.cpu = d.cpu() - cpu
	return c
}

func open(b *testing.B, node *lab.Host) (conn *nfnl.Conn) {
	b.Helper()
	if err := node.Do(func() (err error) { conn, err = nfnl.Open(); return err }); err != nil {
		b.Fatal(err)
	}
	return conn
}

// foreign is the number of elements that another program writes.
const foreign = 100_000

// BenchmarkStranger measures what it costs to hear of what others do to tables of their own.
func BenchmarkStranger(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		t := figures.Grid{Head: []string{fmt.Sprintf("another program adds %d elements to its table", foreign), "its own CPU ms", "CPU ms of the daemon"}}
		t.Add("nobody listens", milliseconds(fillForeign(b, newNode(b)).cpu), "")
		d := newWatched(b, 10)
		cpu := d.cpu()
		writer := fillForeign(b, d.node)
		d.rest()
		t.Add("Sluice runs", milliseconds(writer.cpu), milliseconds(d.cpu()-cpu))
		d.Stop()
		publish(b, "stranger", t.String())
	}
}

// fillForeign measures the commit.
func fillForeign(b *testing.B, node *lab.Host) cost {
	b.Helper()
	conn := open(b, node)
	defer conn.Close()
	set := &nft.Set{Name: "numbers", Key: []nft.Field{{Type: nft.ClassID}}, Size: foreign * 2}
	batch := wire.NewBatch("stranger")
	batch.AddTable(nft.Table{Name: "stranger"})
	batch.AddSet(set)
	for i := range uint32(foreign) {
		batch.AddElement(set, &nft.Element{Key: nft.Value{}.Uint32(i)})
	}
	bytes := batch.Finish()
	return measure(b, func() error { return conn.Commit(b.Context(), bytes) })
}
