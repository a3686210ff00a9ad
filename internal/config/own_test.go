package config

import (
	"strings"
	"testing"
	"time"
)

// What modes ipvs and userspace are told, by file and by flags.
func TestModesOfTheirOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want func(*Config)
	}{
		"ipvs by file": {
			file: header + "mode: ipvs\nipvs: {scheduler: wlc, strictARP: true, excludeCIDRs: [10.1.0.0/16], tcpTimeout: 2m, tcpFinTimeout: 1m, udpTimeout: 10s, syncPeriod: 20s}\niptables: {masqueradeBit: 5, masqueradeAll: true}\n",
			want: func(c *Config) {
				c.Mode, c.MasqueradeBit, c.SyncPeriod, c.Plan.MasqueradeAll, c.Plan.GuardAddresses = ModeIPVS, 5, 20*time.Second, true, true
				c.IPVS = IPVS{"wlc", prefixes("10.1.0.0/16"), true, 2 * time.Minute, time.Minute, 10 * time.Second}
			},
		},
		"ipvs by flags": {
			args: []string{"--mode=ipvs", "--ipvs-scheduler=mh", "--ipvs-min-sync-period=1s", "--cluster-ip-ping"},
			want: func(c *Config) {
				c.Mode, c.IPVS.Scheduler, c.MinSyncPeriod, c.Plan.AnswerPing, c.Plan.GuardAddresses = ModeIPVS, "mh", time.Second, true, true
			},
		},
		"userspace by file": {
			file: header + "mode: userspace\nportRange: 2000-2999\nsluice:\n  answerPing: true\n  userspace: {maxConnections: 10, maxSessions: 11, udpIdleTimeout: 5s, drainTimeout: 1m}\n",
			want: func(c *Config) {
				c.Mode, c.Plan.AnswerPing, c.Plan.LocalhostNodePorts, c.MinSyncPeriod = ModeUserspace, true, true, time.Second
				c.Userspace = Userspace{2000, 2999, 10, 11, 5 * time.Second, time.Minute}
			},
		},
		"userspace by flags": {
			args: []string{"--mode=userspace", "--proxy-port-range=2000+99", "--userspace-max-connections=7"},
			want: func(c *Config) {
				c.Mode, c.Plan.LocalhostNodePorts, c.MinSyncPeriod = ModeUserspace, true, time.Second
				c.Userspace = Userspace{FirstPort: 2000, LastPort: 2099, MaxConnections: 7}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := load(t, tt.file, tt.args...)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			sameConfig(t, defaults(func(c *Config) {
				c.Plan.GuardClusterIPs, c.Plan.LocalhostNodePorts, c.MinSyncPeriod = true, false, 0
				tt.want(c)
			}), got)
		})
	}
}

// A section of Sluice's own that says nothing is not shown, so that kube-proxy reads what is written.
func TestOwnSectionIsShownIfItSaysSomething(t *testing.T) {
	for file, want := range map[string]bool{"": false, header + "sluice: {answerPing: true}\n": true} {
		c, _, err := load(t, file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := c.YAML()
		if err != nil || strings.Contains(string(text), "sluice") != want {
			t.Errorf("%q is written as (%v)\n%s", file, err, text)
		}
	}
}

// The gate hands loopback addresses to a proxy in mode nftables, so that rules leave them alone.
func TestGateOfLocalhostNodePorts(t *testing.T) {
	c, _, err := load(t, "", "--nodeport-addresses=localhost", "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true", "--mode=nftables")
	if err != nil || c.Plan.LocalhostNodePorts || !c.Plan.LocalhostProxy || !c.Plan.NodePortAddresses.Localhost {
		t.Errorf("error %v, by rules: %t, by the proxy: %t", err, c.Plan.LocalhostNodePorts, c.Plan.LocalhostProxy)
	}
	for _, mode := range []string{ModeIPTables, ModeIPVS, ModeUserspace} {
		if other, _ := c.For(mode); other.Plan.LocalhostProxy {
			t.Errorf("mode %s has the proxy serve loopback addresses", mode)
		}
	}
}
