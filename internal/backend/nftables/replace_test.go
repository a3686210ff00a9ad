package nftables

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/lab"
	"sluice/internal/model"
)

// witness counts the packets of clients outside to a Service's UDP port 80, by what nat made of them. It lets none pass,
// so that connection tracking remembers none: each packet is the first one of a connection.
const witness = `
table inet witness {
	counter untranslated { }
	counter unmasqueraded { }
	counter right { }
	chain forward {
		type filter hook forward priority -10;
		udp dport 80 counter name untranslated drop
	}
	chain postrouting {
		type filter hook postrouting priority 300;
		ip saddr 203.0.113.0/24 udp dport 8080 counter name unmasqueraded drop
		udp dport 8080 counter name right drop
	}
}`

// A packet that a transaction overtakes is translated by what was before or by what comes. There are some ten thousand
// packets a second here, of which a table that is merely replaced loses one at every tenth time.
func TestPacketsUnderWay(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"the table is replaced": func(w *rig) { w.rules.dirty.table = true },
		"other Services change": func(w *rig) {
			w.change(service(2+rand.IntN(9), endpointBytes(rand.IntN(12))...))
			w.change(gone(2 + rand.IntN(9)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := upLab(t)
			w := newRig(t, udpService(1, 5, 6))
			b := New(DefaultOptions(), Deps{})
			applyAt(t, l.Node(), b, w)
			cmd := l.Node().Command(t.Context(), "nft", "-f", "-")
			cmd.Stdin = strings.NewReader(witness)
			succeed(t, cmd)
			stop := flood(t, l.Host("clients"), netip.AddrPortFrom(clusterIP(1), 80))
			rounds := 200
			if testing.Short() {
				rounds /= 10
			}
			for range rounds {
				change(w)
				applyAt(t, l.Node(), b, w)
			}
			stop()
			got := witnessed(t, l.Node())
			t.Logf("packets: %v", got)
			if got["untranslated"]+got["unmasqueraded"] > 0 || got["right"] == 0 {
				t.Error("some were not translated")
			}
		})
	}
}

// endpointBytes are n endpoints, any of some.
func endpointBytes(n int) (all []byte) {
	for _, i := range rand.Perm(20)[:n] {
		all = append(all, byte(5+i))
	}
	return all
}

// udpService is [service] over UDP.
func udpService(i int, endpoints ...byte) model.Delta {
	d := service(i, endpoints...)
	d.Services[serviceName(i)].Ports[0].Protocol = model.UDP
	d.Slices[serviceName(i)].Ports[0].Protocol = model.UDP
	return d
}

// flood sends datagrams as fast as it can until it is stopped.
func flood(t *testing.T, h *lab.Host, to netip.AddrPort) (stop func()) {
	t.Helper()
	var wg sync.WaitGroup
	done := make(chan struct{})
	stop = sync.OnceFunc(func() { close(done); wg.Wait() })
	t.Cleanup(stop)
	wg.Go(func() {
		if err := h.Do(func() error { return send(to, done) }); err != nil {
			t.Error(err)
		}
	})
	return stop
}

func send(to netip.AddrPort, done chan struct{}) error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(s) }()
	addr := &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}
	for {
		select {
		case <-done:
			return nil
		default:
		}
		if err := syscall.Sendto(s, []byte("hello"), 0, addr); err != nil {
			return err
		}
	}
}

func witnessed(t *testing.T, h *lab.Host) map[string]int {
	t.Helper()
	out, err := h.Command(t.Context(), "nft", "list", "counters", "table", "inet", "witness").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	counts := map[string]int{}
	for _, m := range regexp.MustCompile(`counter (\w+) \{\s+packets (\d+)`).FindAllStringSubmatch(string(out), -1) {
		counts[m[1]], _ = strconv.Atoi(m[2])
	}
	return counts
}

// What is there for packets under way goes after the replacement, also if that fails at first.
func TestReplacedLeavesNothing(t *testing.T) {
	for name, failure := range map[string]error{
		"nothing fails": nil, "no answer": nfnl.ErrUnanswered, "a refusal": nfnl.Errors{{Seq: 1, Errno: syscall.EBUSY}},
	} {
		t.Run(name, func(t *testing.T) {
			b, f := withFaults(t)
			w := newRig(t, service(1, 5, 6), service(2, 7))
			apply(t, b, w.rules)
			var during [][]string
			f.before = func() error {
				if during = append(during, laterChains(t, b)); len(during) == 2 {
					return failure
				}
				return nil
			}
			w.rules.dirty.table = true
			got := apply(t, b, w.rules)
			f.before = nil
			if len(during) < 2 || len(during[0]) != 0 || len(during[1]) != 6 {
				t.Errorf("before each transaction there were %v, want none, then one for each base chain", during)
			}
			if left := laterChains(t, b); len(left) > 0 || len(got.Restored) > 0 {
				t.Errorf("there are still %v; told as the work of others is %v", left, got.Restored)
			}
			same(t, b)
			restarts(t, w)
		})
	}
}

// A process that was killed after the replacement leaves chains behind. The next one needs not make the table anew.
func TestRestartAfterAnUnfinishedReplacement(t *testing.T) {
	b, f := withFaults(t)
	w := newRig(t, service(1, 5, 6))
	apply(t, b, w.rules)
	killed := errors.New("killed")
	commits := 0
	f.before = func() error {
		if commits++; commits > 1 {
			return killed
		}
		return nil
	}
	w.rules.dirty.table = true
	if _, err := b.Apply(t.Context(), w.rules, recheck); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	f.before = nil
	left := laterChains(t, b)
	if len(left) == 0 {
		t.Fatal("nothing was left behind")
	}
	if got := apply(t, another(t), w.restarted().rules); got.Written != len(left) {
		t.Errorf("%d objects written, want the %d chains", got.Written, len(left))
	}
	restarts(t, w)
}

// A chain is there before anything leads to it, and goes if that is refused.
func TestNewChainsComeFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		refused int // the transaction that is refused, from 1; 0: none
		want    []bool
	}{
		"taken":   {0, []bool{false, true}},
		"refused": {2, []bool{false, true, true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			b, f := withFaults(t)
			w := newRig(t, service(1, 5, 6))
			apply(t, b, w.rules)
			var there []bool // before each transaction
			f.before = func() error {
				there = append(there, slices.Contains(chainsInKernel(t, b), "random-3"))
				if len(there) == tt.refused {
					return nfnl.Errors{{Seq: 1, Errno: syscall.ENOSPC}}
				}
				return nil
			}
			w.change(service(1, 5, 6, 7))
			got := apply(t, b, w.rules)
			f.before = nil
			if n := min(len(there), len(tt.want)); !slices.Equal(there[:n], tt.want) || len(got.Refused) > 0 {
				t.Errorf("before the transactions the chain was there: %v, want %v; refused are %v", there, tt.want, got.Refused)
			}
			same(t, b)
			restarts(t, w)
		})
	}
}

// laterChains are those in the kernel.
func laterChains(t *testing.T, b *Backend) []string {
	t.Helper()
	return slices.DeleteFunc(chainsInKernel(t, b), func(name string) bool { return !isLater(name) })
}

func chainsInKernel(t *testing.T, b *Backend) []string {
	t.Helper()
	have, err := b.readFrame(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(have.chains))
}
