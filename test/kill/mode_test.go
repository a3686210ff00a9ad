package kill

import (
	"time"

	"sluice/internal/testkit/daemon"
)

// mode is how the test looks at, and disturbs, the work of daemons of one mode.
type mode interface {
	// require ends the test where this user cannot run it.
	require(st *stage)
	// prepare makes the node ready for the first daemon.
	prepare(st *stage)
	// flags are those of every verb.
	flags() []string
	// relays reports whether connections go through the daemon, and so last as long as that.
	relays() bool
	// writing reports whether the daemon writes, or is about to.
	writing(st *stage, d *daemon.Daemon) bool
	// run starts a daemon, and returns at a moment at which to kill it. Moments differ from round to round.
	run(st *stage, round int) *daemon.Daemon
	// aim looks at a daemon that is about to be killed. What it returns is called when it is dead, and reports whether
	// that interrupted a write.
	aim(st *stage, d *daemon.Daemon) (dead func() (interrupted bool))
	// asCompiled compares the kernel with a fresh compile of the manifests.
	asCompiled(st *stage) error
	// state is all that a write would change: the rules with the counters of packets, and the generation where the kernel
	// has one.
	state(st *stage) string
}

// atStart waits for any moment of a daemon's first sync.
func (st *stage) atStart() { time.Sleep(st.random(st.sync)) }

// atWrite waits for a daemon to write, and then for any moment of that. On a busy machine the first write may begin and
// end between two looks; then it waits for no other.
func (st *stage) atWrite(d *daemon.Daemon) {
	st.Helper()
	st.eventually(func() error {
		if _, err := firstWrite(d.Log()); err == nil {
			return nil
		}
		return st.writes(d)
	})
	time.Sleep(st.random(st.write))
}

// afterWrite waits for the end of the first write and a moment longer.
func (st *stage) afterWrite(d *daemon.Daemon, longest time.Duration) {
	st.Helper()
	st.eventually(func() error { _, err := firstWrite(d.Log()); return err })
	time.Sleep(st.random(longest))
}
