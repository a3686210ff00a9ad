package kill

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/netns"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/daemon"
)

// firstLoads is how often a daemon is killed while it fills an empty table.
const firstLoads = 10

// nftablesMode is mode nftables.
type nftablesMode struct{}

func (nftablesMode) require(*stage) {}

func (nftablesMode) flags() []string { return []string{"--mode", "nftables"} }

func (nftablesMode) relays() bool { return false }

// prepare has daemons begin with an empty table and be killed at random. An ordinary user's socket takes so little at
// once that they fill it in many transactions. There is no client yet.
func (m nftablesMode) prepare(st *stage) {
	st.Helper()
	d := st.start()
	st.measure(d)
	d.Stop()
	for range rounds(firstLoads) {
		m.commit(st, func(b *wire.Batch) {
			b.AddTable(nft.Table{Name: "sluice"}) // the last daemon may not have come so far
			b.DeleteTable()
		})
		d := st.start()
		st.atWrite(d)
		d.Kill()
	}
}

// writing reports whether the daemon knows what to write and has not yet said that it is done.
func (nftablesMode) writing(_ *stage, d *daemon.Daemon) bool {
	log := d.Log()
	_, err := firstWrite(log)
	return err != nil && strings.Contains(log, `msg="manifests read"`)
}

// run has it be killed at any moment of its first sync; at any moment of making the table anew, which it does where there
// is a chain that is not its own; between two transactions; or at a change that came later.
func (m nftablesMode) run(st *stage, round int) *daemon.Daemon {
	st.Helper()
	switch round % 4 {
	case 1:
		if netns.StartedByRoot() { // for others the new table would come in pieces, without the Services at first
			m.commit(st, func(b *wire.Batch) { b.AddChain(&nft.Chain{Name: "stranger"}) })
		}
		d := st.start()
		st.atWrite(d)
		return d
	case 2:
		before := m.generation(st)
		d := st.start()
		st.poll(50*time.Microsecond, func() error {
			if m.generation(st) == before {
				return fmt.Errorf("no transaction:\n%s", d.Log())
			}
			return nil
		})
		return d
	case 3:
		d := st.start()
		st.afterWrite(d, 200*time.Millisecond)
		return d
	}
	d := st.start()
	st.atStart()
	return d
}

// aim takes a write for interrupted if the daemon began it and did not say that it was done.
func (m nftablesMode) aim(st *stage, d *daemon.Daemon) func() bool {
	return func() bool { return m.writing(st, d) }
}

// asCompiled compares by `sluice diff` and, as nft lists the table, by what its elements mean, so that a fault of the
// comparison that the daemon itself makes shows too.
func (m nftablesMode) asCompiled(st *stage) error {
	st.Helper()
	if _, err := st.sluice("diff"); err != nil {
		return err
	}
	rendered, err := st.sluice("render")
	if err != nil {
		return err
	}
	if diff := cmp.Diff(meaning(rendered), meaning(m.list(st))); diff != "" {
		return fmt.Errorf("the kernel (+) is not as a fresh compile (-) has it:\n%s", diff)
	}
	return nil
}

func (m nftablesMode) state(st *stage) string {
	st.Helper()
	listed := regexp.MustCompile(` expires \w+`).ReplaceAllString(m.list(st), "")
	return fmt.Sprintf("%sgeneration %d", listed, m.generation(st))
}

// list is what nft lists, with handles.
func (nftablesMode) list(st *stage) string {
	st.Helper()
	out, err := st.lab.Node().Command(st.Context(), "nft", "-a", "list", "table", "inet", "sluice").CombinedOutput()
	if err != nil {
		st.Fatalf("nft: %v\n%s", err, out)
	}
	return string(out)
}

// commit changes the table past the daemon.
func (m nftablesMode) commit(st *stage, fill func(*wire.Batch)) {
	st.Helper()
	batch := wire.NewBatch("sluice")
	fill(batch)
	m.ask(st, func(conn *nfnl.Conn) error { return conn.Commit(context.Background(), batch.Finish()) })
}

func (m nftablesMode) generation(st *stage) (id uint32) {
	st.Helper()
	m.ask(st, func(conn *nfnl.Conn) (err error) {
		id, err = conn.Generation(context.Background())
		return err
	})
	return id
}

// ask opens a socket to nf_tables on the node.
func (nftablesMode) ask(st *stage, f func(*nfnl.Conn) error) {
	st.Helper()
	st.must(st.lab.Node().Do(func() error {
		conn, err := nfnl.Open()
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return f(conn)
	}))
}
