package kill

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

// stage is a lab, a folder of manifests that daemons on its node watch, and clients of the Services that do not change.
type stage struct {
	*testing.T
	lab     *lab.Lab
	mode    mode
	cluster *cluster
	loads   *loads
	rnd     *rand.Rand
	// sync is how long a daemon takes from its start to the end of its first sync, and write how long the writes in that.
	sync, write time.Duration
	kills       int
	interrupted int // of those, the ones that came while a daemon wrote
}

func open(t *testing.T, m mode, rnd *rand.Rand) *stage {
	t.Helper()
	nstest.Require(t)
	st := &stage{T: t, mode: m, rnd: rnd}
	m.require(st)
	st.lab = scenario.Up(t, lab.Reference())
	for _, pods := range []string{"pods-a", "pods-b"} {
		for protocol, port := range map[model.Protocol]uint16{model.TCP: podTCP, model.UDP: podUDP} {
			_, err := st.lab.Host(pods).ServeAll(protocol, port)
			st.must(err)
		}
	}
	st.cluster = &cluster{folder: filepath.Join(t.TempDir(), "manifests"), rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0))}
	st.must(os.Mkdir(st.cluster.folder, 0o755))
	st.must(replace(filepath.Join(st.cluster.folder, "stable.yaml"), scenario.Nodes+"---"+stableObjects))
	for file := range files {
		st.must(st.cluster.change(file))
	}
	m.prepare(st)
	d := st.start()
	st.measure(d)
	d.Stop()
	st.loads = st.startLoads()
	t.Cleanup(func() { st.loads.stop(t) })
	return st
}

// flags are those of every verb.
func (st *stage) flags() []string {
	return slices.Concat(st.mode.flags(), []string{"--manifests", st.cluster.folder}, scenario.Reference())
}

// start starts a daemon. It does not pause between writes.
func (st *stage) start() *daemon.Daemon {
	st.Helper()
	return daemon.Start(st, st.lab.Node(), append(st.flags(), "--iptables-min-sync-period=1ms", "--v=2")...)
}

// firstWrite is how many objects a daemon changed in its first write, by its log. The error says that there was none
// yet.
func firstWrite(log string) (objects int, err error) {
	m := regexp.MustCompile(`msg="rules written" changed=(\d+) `).FindStringSubmatch(log)
	if m == nil {
		return 0, fmt.Errorf("the daemon has written nothing yet:\n%s", log)
	}
	return strconv.Atoi(m[1])
}

// sluice runs a verb on the node.
func (st *stage) sluice(verb string, args ...string) (string, error) {
	return daemon.Run(st.lab.Node(), slices.Concat([]string{verb}, st.flags(), args)...)
}

// follow sends one more datagram of a flow: it must arrive at an endpoint of now, wherever the flow went before.
func (st *stage) follow(f udpFlow) error {
	o, err := st.lab.Host("pods-a").Dial(f.dial)
	if err != nil {
		return err
	}
	arrived := o.Action == plan.Forward
	if right := f.to.there && slices.Contains(f.to.endpoints, o.Endpoint.Addr()); arrived && !right {
		return fmt.Errorf("a datagram from port %d to %s arrived at %s, endpoints are %v", f.dial.FromPort, f.dial.To, o.Endpoint, f.to.endpoints)
	}
	if wanted := f.to.there && len(f.to.endpoints) > 0; arrived != wanted {
		return fmt.Errorf("a datagram from port %d to %s: %s, endpoints are %v", f.dial.FromPort, f.dial.To, o, f.to.endpoints)
	}
	return nil
}

// enough connections of a client show that it is served.
const enough = 20

// loads are the clients of the Services that do not change.
type loads struct {
	short         []*lab.Load
	names         []string
	open          []*lab.Conn // connections that stay open
	total, failed int
	ended         bool
	relayed       bool // while no daemon runs they fail, and that is no fault
}

func (st *stage) startLoads() *loads {
	st.Helper()
	l := &loads{relayed: st.mode.relays()}
	for _, c := range []struct {
		from, to string
		protocol model.Protocol
	}{
		{"pods-a", "10.96.0.10:80", model.TCP},
		{"pods-a", "[fd00:96::10]:80", model.TCP},
		{"node-a", "10.96.0.10:80", model.TCP},
		{"clients", "192.168.10.11:30080", model.TCP},
		{"pods-a", "10.96.0.11:53", model.UDP},
		{"clients", "192.168.10.11:30053", model.UDP},
	} {
		// Where a rule is missing the network refuses at once. Silence is a busy machine, and waited for.
		dial := lab.Dial{To: netip.MustParseAddrPort(c.to), Protocol: c.protocol, Timeout: limit}
		if l.relayed {
			dial.Timeout = 2 * time.Second // what was on its way through a daemon that is killed is lost
		}
		l.short = append(l.short, st.lab.Host(c.from).Load(dial, 3*time.Millisecond))
		l.names = append(l.names, fmt.Sprintf("%s to %s/%s", c.from, c.to, c.protocol))
		if c.protocol == model.TCP && !l.relayed {
			conn, o, err := st.lab.Host(c.from).Connect(dial)
			if st.must(err); conn == nil {
				st.Fatalf("from %s to %s: %s", c.from, c.to, o)
			}
			l.open = append(l.open, conn)
		}
	}
	return l
}

// check fails the test if a connection failed since the last time.
func (l *loads) check(t *testing.T, when string) {
	t.Helper()
	for i, load := range l.short {
		tally, err := load.Tally()
		l.count(t, when, i, tally, err)
	}
	for i, conn := range l.open {
		if err := conn.Echo("still there?"); err != nil {
			t.Errorf("%s: open connection %d: %v", when, i, err)
		}
	}
}

// serve counts the connections of each that were forwarded, and is an error until these are some. One that began since a
// daemon runs and failed fails the test.
func (l *loads) serve(t *testing.T, since time.Time, served []int) error {
	t.Helper()
	var missing error
	for i, load := range l.short {
		tally, err := load.Tally()
		for _, f := range tally.Failures {
			if f.Began.After(since) {
				t.Errorf("while a daemon runs: %s: %v", l.names[i], f)
				l.failed++
			}
		}
		l.total += tally.Total
		served[i] += tally.Forwarded()
		if err != nil {
			t.Fatalf("%s: %v", l.names[i], err)
		}
		if served[i] < enough {
			missing = fmt.Errorf("%s: %d connections", l.names[i], served[i])
		}
	}
	return missing
}

func (l *loads) count(t *testing.T, when string, i int, tally lab.Tally, err error) {
	t.Helper()
	if l.relayed {
		return
	}
	if err != nil || len(tally.Failed) > 0 {
		t.Errorf("%s, %s: %s: of %d connections failed %v, error %v; the first: %v",
			time.Now().Format("15:04:05.000"), when, l.names[i], tally.Total, tally.Failed, err, tally.Failures)
	}
	l.total += tally.Total
	for _, n := range tally.Failed {
		l.failed += n
	}
}

// stop ends all of them.
func (l *loads) stop(t *testing.T) {
	t.Helper()
	if l.ended {
		return
	}
	l.ended = true
	for i, load := range l.short {
		tally, err := load.Stop()
		l.count(t, "the end", i, tally, err)
	}
	for _, conn := range l.open {
		_ = conn.Close()
	}
}

func (l *loads) done() string { return fmt.Sprintf("%d connections, %d failed", l.total, l.failed) }
