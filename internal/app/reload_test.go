package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/config"
	"sluice/internal/kernel/sysctl"
)

// reloads has the node's daemon follow the configurations that the returned function is called with.
func (n *node) reloads() (say func(config.Config, error)) {
	type word struct {
		config.Config
		err error
	}
	words := make(chan word)
	n.reload = func(ctx context.Context, _ config.Config, changed func(config.Config, []string, error)) error {
		for {
			select {
			case w := <-words:
				changed(w.Config, nil, w.err)
			case <-ctx.Done():
				return nil
			}
		}
	}
	return func(c config.Config, err error) { words <- word{c, err} }
}

// Every kind of change takes effect in the daemon that runs, without a moment in which there are no rules.
func TestConfigurationChangesLive(t *testing.T) {
	n := newNode(t)
	say := n.reloads()
	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.5:53"))
	n.start()
	n.eventually("iptables has rules", n.has("--to-destination 10.244.2.5:53"))

	masqueradeAll := flags(t, "--mode=iptables", "--node=node-a", "--cluster-cidr=10.244.0.0/16", "--masquerade-all")
	say(masqueradeAll, nil)
	n.eventually("the policy is followed", func() bool { return !n.has("! -s 10.244.0.0/16")() })

	bit := flags(t, "--mode=iptables", "--node=node-a", "--cluster-cidr=10.244.0.0/16", "--iptables-masquerade-bit=15")
	say(bit, nil)
	n.eventually("the mark is followed, in each table", func() bool {
		rules := n.rules()
		return strings.Contains(rules, "0x8000") && !strings.Contains(rules, "0x4000")
	})

	nftables := flags(t, "--mode=nftables", "--node=node-a", "--cluster-cidr=10.244.0.0/16")
	say(nftables, nil)
	n.eventually("there is a table", func() bool { return n.hasTable("sluice") })
	n.eventually("the chains are gone", func() bool { return !n.has("KUBE-")() })
	n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.6:53"))
	n.in.Config = nftables
	n.eventually("what came from the source is in force", n.asPlanned)

	say(config.Config{}, errors.New("line 3: no such thing"))
	n.eventually("a wrong file is told", func() bool { return strings.Contains(n.said(), "what it said before stays in force") })
	say(n.in.Config, nil)
	n.eventually("and that it is over", func() bool { return strings.Contains(n.said(), "problem is over") })
	n.stop()
}

// A mode that cannot start leaves the one before at work.
func TestModeThatCannotStart(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	say := n.reloads()
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	t.Run("", func(t *testing.T) {
		t.Setenv("PATH", brokenPrograms(t))
		n.start()
		n.eventually("there is a table", func() bool { return n.hasTable("sluice") })
		say(flags(t, "--mode=iptables", "--node=node-a"), nil)
		n.eventually("the failure is told", func() bool { return strings.Contains(n.said(), "the mode stays as it was") })
		n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.6:53"))
		n.in.Config = flags(t, "--mode=nftables", "--node=node-a")
		n.eventually("changes are still followed", n.asPlanned)
		say(config.Config{}, errors.New("line 3: no such thing"))
		n.eventually("a wrong file is told beside it", func() bool {
			r, err := askDaemon()
			return err == nil && len(r.Problems) > 1 && strings.Contains(strings.Join(r.Problems, "\n"), "the mode stays as it was")
		})
	})
	n.eventually("the mode takes over once it can start", n.has("--to-destination 10.244.2.6:53"))
	n.eventually("and what was wrong with it is over, but for the file", func() bool {
		r, err := askDaemon()
		all := strings.Join(r.Problems, "\n")
		return err == nil && r.Mode == config.ModeIPTables && strings.Contains(all, "no such thing") && !strings.Contains(all, "the mode stays as it was")
	})
	say(flags(t, "--mode=nftables", "--node=node-b"), nil)
	n.eventually("what takes a start is told", func() bool { return strings.Contains(n.said(), "it takes effect when sluice starts again") })
	n.stop()
}

// What was wrong with the configuration from the start stands in the status until it is over.
func TestWarningsOfTheStart(t *testing.T) {
	n := newNode(t)
	say := n.reloads()
	n.in.Warnings = []string{"config.conf:3: no such field"}
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	stands := func() bool {
		r, err := askDaemon()
		return err == nil && slices.Contains(r.Problems, n.in.Warnings[0])
	}
	n.start()
	n.eventually("it stands", stands)
	say(config.Config{}, errors.New("line 4: no such thing"))
	n.eventually("it is over", func() bool {
		return !stands() && strings.Contains(n.said(), `msg="problem is over" what="config.conf:3: no such field"`)
	})
	if strings.Contains(n.said(), `msg=problem what="config.conf:3`) {
		t.Error("it is told twice")
	}
	n.stop()
}

// Without a mode the best one is chosen, as a new start would choose it.
func TestModeThatIsNoLongerGiven(t *testing.T) {
	n := newNode(t)
	say := n.reloads()
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("iptables has rules", n.has("--to-destination 10.244.2.5:53"))
	say(flags(t, "--node=node-a"), nil)
	n.eventually("there is a table", func() bool { return n.hasTable("sluice") })

	n.in.Config, _ = flags(t, "--node=node-a", "--masquerade-all").For(config.ModeNFTables)
	say(flags(t, "--node=node-a", "--masquerade-all"), nil)
	n.eventually("it is chosen again beside its own rules", n.asPlanned)
	if r, err := askDaemon(); err != nil || r.Mode != config.ModeNFTables {
		t.Errorf("mode %q, error %v", r.Mode, err)
	}
	n.stop()
}

// Rules that depend on a setting of the kernel are made for what the configuration sets it to.
func TestRulesFollowTheMachine(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	say := n.reloads()
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("there is a table", func() bool { return n.hasTable("sluice") })
	t.Cleanup(func() {
		if _, err := sysctl.Set(keyBeLiberal, "0"); err != nil {
			t.Error(err)
		}
	})
	liberal := n.in.Config
	liberal.Host.Conntrack.BeLiberal = true
	say(liberal, nil)
	n.eventually("the kernel is set, and the rules are those for it", func() bool {
		is, err := beLiberal()
		return err == nil && is && n.asPlanned()
	})
	n.stop()
}

// What an engine that cannot start would be needed for stays; all else is followed, and it is tried again.
func TestWithEngineOf(t *testing.T) {
	now := flags(t, "--mode=nftables")
	next := flags(t, "--mode=iptables", "--iptables-masquerade-bit=15", "--masquerade-all")
	next.Host.Conntrack.BeLiberal = true
	got := withEngineOf(now, next)
	if needsEngine(now, got) {
		t.Error("another engine is needed still")
	}
	if !got.Plan.MasqueradeAll {
		t.Error("what needs no other engine is not followed")
	}
	if !needsEngine(got, next) {
		t.Error("the same configuration would not be tried again")
	}
}

func TestRetryWait(t *testing.T) {
	for _, tt := range []struct{ last, period, want time.Duration }{
		{0, 30 * time.Second, time.Second},
		{time.Second, 30 * time.Second, 2 * time.Second},
		{16 * time.Second, 30 * time.Second, 30 * time.Second},
		{40 * time.Second, time.Hour, time.Minute},
		{0, time.Millisecond, time.Second},
	} {
		if got := retryWait(tt.last, tt.period); got != tt.want {
			t.Errorf("after %v, in periods of %v: %v, want %v", tt.last, tt.period, got, tt.want)
		}
	}
}

// What comes after a hand-over is for the engine that took over, so it has to wait.
func TestHandOverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{engines: make(chan *engine)}
		e := &engine{inForce: make(chan struct{})}
		over := make(chan error, 1)
		go func() { over <- d.handOver(t.Context(), e) }()
		<-d.engines
		synctest.Wait()
		if len(over) > 0 {
			t.Error("the engine before may still be at work")
		}
		close(e.inForce)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// brokenPrograms is a folder of iptables programs that do not work.
func brokenPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"", "-nft", "-legacy"} {
			for _, verb := range []string{"", "-save", "-restore"} {
				if err := os.WriteFile(filepath.Join(dir, family+variant+verb), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return dir
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The ports of kube-proxy answer, and move.
func TestPorts(t *testing.T) {
	n := newNodeOf(t, config.ModeNFTables)
	say := n.reloads()
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("it is healthy", func() bool {
		status, body := get(t, "http://192.168.10.11:10256/healthz")
		return status == http.StatusOK && strings.Contains(body, `"IPv4"`)
	})
	const metrics = "http://127.0.0.1:10249"
	if status, body := get(t, metrics+"/proxyMode"); status != http.StatusOK || body != "nftables" {
		t.Errorf("/proxyMode: %d %q", status, body)
	}
	if _, body := get(t, metrics+"/configz"); !strings.Contains(body, `"clusterCIDR":"10.244.0.0/16"`) {
		t.Errorf("/configz: %s", body)
	}
	if _, body := get(t, metrics+"/metrics"); !strings.Contains(body, "kubeproxy_sync_proxy_rules_duration_seconds_count") {
		t.Errorf("/metrics: %s", body)
	}
	if status, _ := get(t, metrics+"/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("/debug/pprof/: %d without profiling", status)
	}
	moved := n.in.Config
	moved.Serve.Metrics, moved.Serve.Profiling = "127.0.0.1:10250", true
	say(moved, nil)
	n.eventually("the port moves", func() bool {
		status, _ := get(t, "http://127.0.0.1:10250/debug/pprof/")
		return status == http.StatusOK
	})
	if status, _ := get(t, metrics+"/healthz"); status != 0 {
		t.Errorf("the former port answers %d", status)
	}
	n.stop()
}
