package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/lab"
	"sluice/internal/testkit/daemon"
)

// limit is how long anything may take before the benchmark gives up.
const limit = 10 * time.Minute

// whole measures the daemon, which is a process of its own, with a folder of manifests. A change is over when the log
// says that it is written.
func whole(b *testing.B, t *table) {
	b.Helper()
	f, node := newFolder(b, *services), newNode(b)
	mark(b, node, t.variant)
	d := &watched{B: b, folder: f, node: node, flags: iptablesFlags()}
	t.add("daemon: from its start until all is written", d.start())
	d.after(t, "daemon: a file with one other endpoint", func() { f.put(b, service(*services, *endpoints, 1)) })
	d.after(t, "daemon: a file with one more Service", func() {
		f.put(b, service(*services, *endpoints, 1), service(*services+1, *endpoints, 0))
	})
	d.after(t, "daemon: a file with one Service less", func() { f.put(b, service(*services, *endpoints, 1)) })
	t.add("daemon: memory at its peak", cost{peak: d.peak()})
	d.Stop()
	t.add("daemon: from its start with nothing changed", d.start())
	t.add("daemon: memory at its peak, nothing changed", cost{peak: d.peak()})
	d.Stop()
}

// mark leaves the sign by which kubelet tells which variant a node uses.
func mark(b *testing.B, node *lab.Host, v iptexec.Variant) {
	b.Helper()
	err := node.Do(func() error {
		tools, err := iptexec.Find(b.Context(), v)
		if err != nil {
			return err
		}
		return tools.Restore(b.Context(), iptexec.IPv4, []byte("*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n"), iptexec.RestoreOptions{})
	})
	if err != nil {
		b.Fatal(err)
	}
}

// watched is a daemon and what it has written.
type watched struct {
	*testing.B
	*daemon.Daemon
	folder *folder
	node   *lab.Host
	flags  []string
}

func iptablesFlags() []string { return []string{"--mode=iptables"} }

// start starts a daemon. Its retries would spoil the figures, so it is given no reason for them.
func (d *watched) start() cost {
	d.Helper()
	begin := time.Now()
	d.Daemon = daemon.Start(d.B, d.node, append([]string{
		"--manifests", d.folder.path, "--cluster-cidr", clusterCIDR,
		"--iptables-min-sync-period=1ms", "--iptables-sync-period=1h", "--v=2",
	}, d.flags...)...)
	d.written(1)
	return cost{wall: time.Since(begin), cpu: d.cpu()}
}

// after measures the daemon from a change until it is written.
func (d *watched) after(t *table, what string, change func()) {
	d.Helper()
	t.add(what, d.until(change))
}

func (d *watched) until(change func()) cost {
	d.Helper()
	writes, cpu, begin := d.writes(), d.cpu(), time.Now()
	change()
	d.written(writes + 1)
	return cost{wall: time.Since(begin), cpu: d.cpu() - cpu}
}

func (d *watched) writes() int { return strings.Count(d.Log(), `msg="rules written"`) }

func (d *watched) written(times int) {
	d.Helper()
	for end := time.Now().Add(limit); d.writes() < times; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.Fatalf("the daemon does not write:\n%s", d.Log())
		}
	}
	for _, l := range d.Complaints() {
		d.Fatal(l)
	}
}

// ticks are in a second of proc_pid_stat(5), on every architecture.
const ticks = 100

// cpu is the time that the daemon has had on processors, to the nanosecond, and the programs that it ran.
func (d *watched) cpu() (total time.Duration) {
	d.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.Pid()))
	if err != nil {
		d.Fatal(err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		total += time.Duration(d.number(strings.Fields(string(text))[0]))
	}
	_, rest, _ := strings.Cut(d.proc("stat"), ") ")
	for _, word := range strings.Fields(rest)[13:15] { // cutime, cstime
		total += time.Duration(d.number(word)) * time.Second / ticks
	}
	return total
}

// peak is the most memory that the daemon itself ever had, in bytes.
func (d *watched) peak() int {
	d.Helper()
	return memory(d.B, d.proc("status"), "VmHWM")
}

// memory is what a text of proc_pid_status(5) says, in bytes.
func memory(b *testing.B, status, field string) int {
	b.Helper()
	_, rest, found := strings.Cut(status, field+":")
	kilobytes := 0
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil || !found {
		b.Fatalf("%s: %v in\n%s", field, err, status)
	}
	return kilobytes << 10
}

func (d *watched) proc(file string) string {
	d.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", d.Pid(), file))
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

func (d *watched) number(text string) int64 {
	d.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		d.Fatal(err)
	}
	return n
}
