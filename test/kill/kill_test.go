package kill

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/testkit/daemon"
)

// limit is how long anything may take to come true; a test that passes never waits for it.
const limit = 60 * time.Second

// Kills of each variant of iptables, and after how many the state is looked at. In a short test it is a tenth.
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
	rounds := kills
	if testing.Short() {
		rounds = kills / 10
	}
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		t.Run(string(v), func(t *testing.T) {
			st := open(t, v, rand.New(rand.NewPCG(*seed, 0)))
			st.settle()
			stop := st.changeAllTheTime()
			for round := 1; round <= rounds; round++ {
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
			if st.interrupted == 0 && !testing.Short() { // a few kills may all miss
				t.Error("no kill came while iptables-restore ran")
			}
			t.Logf("%d kills, %d of them while iptables-restore ran; %s", rounds, st.interrupted, st.loads.done())
		})
	}
}

// killOne lets a daemon run for a random time and kills it: at any moment of its first sync, at any moment of a write, or
// just after one, when what connection tracking remembers is yet to be cleaned.
func (st *stage) killOne(round int) {
	st.Helper()
	d := st.start()
	switch round % 3 {
	case 0:
		time.Sleep(st.random(st.sync))
	case 1:
		st.eventually(func() error { return st.writes(d) })
		time.Sleep(st.random(st.write))
	case 2:
		st.eventually(func() error { _, err := firstWrite(d.Log()); return err })
		time.Sleep(st.random(st.write / 4))
	}
	under := restores(st, d.Pid())
	d.Kill()
	if len(under) > 0 {
		st.interrupted++
	}
	for _, pid := range under {
		if !doomed(st, pid) {
			st.Errorf("kill %d: iptables-restore outlives the daemon", round)
		}
	}
	st.loads.check(st.T, fmt.Sprintf("kill %d", round))
}

// writes reports whether the daemon writes just now.
func (st *stage) writes(d *daemon.Daemon) error {
	if len(restores(st, d.Pid())) == 0 {
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
	st.eventually(func() error { return st.asCompiled() })
	for _, f := range st.cluster.flows() {
		st.eventually(func() error { return st.follow(f) })
	}
	for _, complaint := range d.Complaints() {
		st.Errorf("the daemon complained: %s", complaint)
	}
	d.Stop()
	st.loads.check(st.T, "settling")
}

// measure takes the times from a daemon's start to the end of its first sync, and of the writes in it.
func (st *stage) measure(d *daemon.Daemon) {
	st.Helper()
	begin := time.Now()
	var first, last time.Time
	st.eventually(func() error {
		if now := time.Now(); len(restores(st, d.Pid())) > 0 {
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
	st.loads.stop()
	before := st.state()
	d := st.start()
	written := 0
	st.eventually(func() (err error) { written, err = firstWrite(d.Log()); return err })
	d.Stop()
	if after := st.state(); written != 0 || before != after {
		st.Errorf("a restart with nothing changed: %d objects written; the kernel before:\n%s\nand after:\n%s", written, before, after)
	}
}

// state is all that a write would change: the rules with the counters of packets, and the generation where the kernel
// has one.
func (st *stage) state() string {
	st.Helper()
	state := ""
	for _, f := range families {
		state += withoutComments(st.save(f))
	}
	err := st.lab.Node().Do(func() error {
		generation, err := st.tools.Generation()
		state += "generation " + strconv.FormatUint(uint64(generation), 10)
		return err
	})
	if err != nil && st.tools.Variant == iptexec.NFT {
		st.Fatal(err)
	}
	return state
}

// eventually tries until f is content.
func (st *stage) eventually(f func() error) {
	st.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	st.Fatalf("after %s: %v", limit, err)
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
