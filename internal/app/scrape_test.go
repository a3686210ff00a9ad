package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"sluice/internal/config"
)

// A scrape has what each mode counts, from the kernel.
func TestScrape(t *testing.T) {
	for mode, lines := range map[string][]string{
		config.ModeIPTables: {
			`kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="filter"} 3`,
			"kubeproxy_iptables_ct_state_invalid_dropped_packets_total 0",
			"kubeproxy_iptables_localhost_nodeports_accepted_packets_total 0",
		},
		config.ModeNFTables: {
			`sluice_service_connections_total{ip_family="IPv4",name="dns",namespace="default",port="",protocol="UDP"} 0`,
			`sluice_service_endpoints{ip_family="IPv4"} 1`,
		},
	} {
		t.Run(mode, func(t *testing.T) {
			n := newNodeOf(t, mode)
			n.put(udp("dns", "10.96.0.10", 53, 30053, "10.244.2.5:53"))
			n.start()
			n.eventually("rules are written", func() bool { return strings.Contains(n.said(), "rules written") })
			for _, l := range lines {
				n.eventually(l, func() bool {
					_, body := get(t, "http://127.0.0.1:10249/metrics")
					return strings.Contains(body, "\n"+l+"\n")
				})
			}
		})
	}
}

// A count that fails is told once, however often it is asked for, and again when it fails anew.
func TestFailedCountIsToldOnce(t *testing.T) {
	var said bytes.Buffer
	var err error
	count := toldOnce(func(context.Context) (int, error) { return 1, err }, "sheep", slog.New(slog.NewTextHandler(&said, nil)))
	ended, end := context.WithCancel(t.Context())
	end()
	for i, step := range []struct {
		ctx  context.Context
		err  error
		told int // so far
	}{
		{t.Context(), nil, 0},
		{ended, errors.New("no time"), 0},
		{t.Context(), errors.New("no"), 1},
		{t.Context(), errors.New("no"), 1},
		{ended, errors.New("no time"), 1},
		{t.Context(), nil, 1},
		{t.Context(), errors.New("no"), 2},
	} {
		err = step.err
		if _, got := count(step.ctx); !errors.Is(got, err) {
			t.Errorf("step %d: error %v", i, got)
		}
		if told := strings.Count(said.String(), "what=sheep error=no"); told != step.told {
			t.Errorf("step %d: told %d times, want %d:\n%s", i, told, step.told, &said)
		}
	}
}
