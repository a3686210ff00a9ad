package nfnl_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/testkit/nstest"
)

// many elements take more buffer than an ordinary user gets.
const many = 100_000

const needsBuffers = "only root may exceed net.core.rmem_max"

// BenchmarkReceive tells what it costs to hear that another program added 100,000 elements.
func BenchmarkReceive(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	other := openWithTable(b)
	l := listen(b, 0)
	messages := 0
	for b.Loop() {
		b.StopTimer()
		fill(b, other, many)
		b.StartTimer()
		for end := false; !end; {
			err := l.Receive(b.Context(), func(kind uint16, _ uint32, _ []byte) {
				messages++
				end = kind == newGen
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		flush(b, other)
		until(b, l, other.PortID())
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
}

// BenchmarkCommit tells what a batch of 100,000 elements costs, and what it costs more if a listener is there, even one
// that leaves out what we do ourselves.
func BenchmarkCommit(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	c := openWithTable(b)
	batch := filling(many)
	load := func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			commit(b, c, batch)
			b.StopTimer()
			flush(b, c)
			b.StartTimer()
		}
	}
	l := listen(b, c.PortID())
	b.Run("listening", load)
	if err := l.Pause(); err != nil {
		b.Fatal(err)
	}
	b.Run("paused", load)
}

// BenchmarkCommitOne tells what the smallest change costs.
func BenchmarkCommitOne(b *testing.B) {
	c := openWithTable(b, 1)
	batch := newBatch().elements(delElement, 0, 1).elements(newElement, unix.NLM_F_CREATE, 1).end()
	b.ReportAllocs()
	for b.Loop() {
		commit(b, c, batch)
	}
}

func BenchmarkDump(b *testing.B) {
	c := openWithTable(b)
	fill(b, c, many)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		err := c.Dump(b.Context(), getElement, setOf(setName), func(_ uint16, data []byte) error { n += len(data); return nil })
		if err != nil || n < many {
			b.Fatal(n, err)
		}
	}
}

// flush deletes all elements.
func flush(b *testing.B, c *nfnl.Conn) {
	b.Helper()
	commit(b, c, newBatch().message(delElement, 0,
		text(unix.NFTA_SET_ELEM_LIST_TABLE, tableName), text(unix.NFTA_SET_ELEM_LIST_SET, setName)).end())
}
