package kill

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/testkit/await"
	"sluice/internal/testkit/daemon"
)

// limit is how long a connection may take.
const limit = await.Limit

// Kills in each mode, and after how many the state is looked at.
const (
	kills      = 100
	checkEvery = 20
)

var seed = flag.Uint64("seed", 0, "start the random numbers from this `seed`; 0: another one each time")

func TestMain(m *testing.M) { daemon.Main(m, cli.Main) }

func TestKill(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	fmt.Printf("%s: -seed=%d\n", t.Name(), *seed)
	rounds := rounds(kills)
	modes := []struct {
		name string
		mode mode
	}{
		{"nftables", nftablesMode{}},
		{"iptables, nf_tables", &iptablesMode{variant: iptexec.NFT}},
		{"iptables, legacy", &iptablesMode{variant: iptexec.Legacy}},
		{"userspace", userspaceMode{}},
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			st := open(t, m.mode, rand.New(rand.NewPCG(*seed, 0)))
			st.settle()
			stop := st.changeAllTheTime()
			for round := 1; round <= rounds || round <= 4*rounds && st.missed(); round++ {
				st.killOne(round)
				if round%checkEvery == 0 || round == rounds {
					stop()
					st.settle()
					stop = st.changeAllTheTime()
				}
			}
			stop()
			st.settle()
			st.restartWritesNothing()
			if st.missed() {
				t.Error("no kill came while a daemon wrote")
			}
			t.Logf("%d kills, %d of them while a daemon wrote; %s", st.kills, st.interrupted, st.loads.done())
		})
	}
}

// rounds is how many of a number are played, at least: in a short test a tenth.
func rounds(all int) int {
	if testing.Short() {
		return all / 10
	}
	return all
}

// killOne lets a daemon run until a moment that the mode chooses, and kills it.
func (st *stage) killOne(round int) {
	st.Helper()
	d := st.mode.run(st, round)
	dead := st.mode.aim(st, d)
	d.Kill()
	st.kills++
	if dead() {
		st.interrupted++
	}
	st.loads.check(st.T, fmt.Sprintf("kill %d", round))
}

// missed reports whether no kill came while a daemon wrote. The few of a short test may all miss.
func (st *stage) missed() bool { return st.interrupted == 0 && !testing.Short() }

// writes is an error unless the daemon writes just now.
func (st *stage) writes(d *daemon.Daemon) error {
	if !st.mode.writing(st, d) {
		return fmt.Errorf("the daemon writes nothing:\n%s", d.Log())
	}
	return nil
}

func (st *stage) random(below time.Duration) time.Duration {
	return time.Duration(st.rnd.Int64N(int64(below)))
}

// settle has a daemon bring the kernel up to date, compares, and stops it.
func (st *stage) settle() {
	st.Helper()
	d := st.start()
	st.measure(d)
	st.eventually(func() error { return st.mode.asCompiled(st) })
	for _, f := range st.cluster.flows() {
		st.eventually(func() error { return st.follow(f) })
	}
	st.serves()
	for _, complaint := range d.Complaints() {
		st.Errorf("the daemon complained: %s", complaint)
	}
	d.Stop()
	st.loads.check(st.T, "settling")
}

// serves has each client connect some times while the daemon runs, where that alone lets it.
func (st *stage) serves() {
	st.Helper()
	if !st.mode.relays() {
		return
	}
	st.loads.check(st.T, "before") // what they met until now
	since, served := time.Now(), make([]int, len(st.loads.short))
	st.eventually(func() error { return st.loads.serve(st.T, since, served) })
}

// measure takes the times from a daemon's start to the end of its first sync, and of the writes in it.
func (st *stage) measure(d *daemon.Daemon) {
	st.Helper()
	begin := time.Now()
	var first, last time.Time
	st.eventually(func() error {
		if now := time.Now(); st.mode.writing(st, d) {
			last = now
			if first.IsZero() {
				first = now
			}
		}
		_, err := firstWrite(d.Log())
		return err
	})
	st.sync, st.write = time.Since(begin), max(last.Sub(first), 4*time.Millisecond)
}

// restartWritesNothing starts a daemon where nothing has changed since the last one, and no packet comes.
func (st *stage) restartWritesNothing() {
	st.Helper()
	st.loads.stop(st.T)
	before := st.mode.state(st)
	d := st.start()
	written := 0
	st.eventually(func() (err error) { written, err = firstWrite(d.Log()); return err })
	d.Stop()
	if after := st.mode.state(st); written != 0 || before != after {
		st.Errorf("a restart with nothing changed: %d objects written; the kernel before:\n%s\nand after:\n%s", written, before, after)
	}
}

// eventually tries until f is content.
func (st *stage) eventually(f func() error) {
	st.Helper()
	st.poll(5*time.Millisecond, f)
}

// poll tries until f is content, with a pause between two tries.
func (st *stage) poll(pause time.Duration, f func() error) {
	st.Helper()
	await.Until(st, pause, f)
}

func (st *stage) must(err error) {
	st.Helper()
	if err != nil {
		st.Fatal(err)
	}
}

// replace writes a file in one step.
func replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
