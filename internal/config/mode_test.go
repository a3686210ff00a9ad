package config

import (
	"testing"
	"time"

	"sluice/internal/plan"
)

// nftablesDefaults is the Config of mode nftables when nothing else is said, with changes.
func nftablesDefaults(edit func(*Config)) Config {
	return defaults(func(c *Config) {
		c.Mode, c.Plan.LocalhostNodePorts, c.Plan.NodePortAddresses.Primary = ModeNFTables, false, true
		c.Plan.GuardClusterIPs = true
		edit(c)
	})
}

func TestPolicyOfNFTables(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want func(*Config)
	}{
		"nothing": {want: func(*Config) {}},
		"its section": {
			file: header + "nftables: {masqueradeBit: 3, masqueradeAll: true, syncPeriod: 10s, minSyncPeriod: 2s}\niptables: {masqueradeBit: 4, syncPeriod: 11s}\n",
			want: func(c *Config) {
				c.MasqueradeBit, c.Plan.MasqueradeAll, c.SyncPeriod, c.MinSyncPeriod = 3, true, 10*time.Second, 2*time.Second
			},
		},
		"kube-proxy's flags": {
			file: header + "nftables: {masqueradeAll: true, syncPeriod: 10s}\n",
			args: []string{"--iptables-sync-period", "20s", "--iptables-min-sync-period", "0", "--masquerade-all=false"},
			want: func(c *Config) { c.SyncPeriod, c.MinSyncPeriod = 20*time.Second, 0 },
		},
		"all addresses": {
			args: []string{"--nodeport-addresses", "all"},
			want: func(c *Config) { c.Plan.NodePortAddresses = plan.NodePortAddresses{All: true} },
		},
		"a range": {
			args: []string{"--nodeport-addresses", "10.0.0.0/8"},
			want: func(c *Config) { c.Plan.NodePortAddresses = plan.NodePortAddresses{Prefixes: prefixes("10.0.0.0/8")} },
		},
		"a range of all addresses does not name loopback": {
			args: []string{"--nodeport-addresses", "0.0.0.0/0"},
			want: func(c *Config) { c.Plan.NodePortAddresses = plan.NodePortAddresses{Prefixes: prefixes("0.0.0.0/0")} },
		},
		"a range of loopback": {
			args: []string{"--nodeport-addresses", "127.0.0.1/32,primary"},
			want: func(c *Config) {
				c.Plan.LocalhostNodePorts = true
				c.Plan.NodePortAddresses = plan.NodePortAddresses{Primary: true, Prefixes: prefixes("127.0.0.1/32")}
			},
		},
		"the keyword localhost": {
			args: []string{"--nodeport-addresses", "localhost,all"},
			want: func(c *Config) {
				c.Plan.LocalhostNodePorts = true
				c.Plan.NodePortAddresses = plan.NodePortAddresses{Localhost: true, All: true}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := load(t, tt.file, append(tt.args, "--mode", "nftables")...)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			sameConfig(t, nftablesDefaults(tt.want), got)
		})
	}
}

// Without a mode the policy is that of nftables, until somebody who knows the kernel chooses another.
func TestNoMode(t *testing.T) {
	const file = header + "mode: ''\niptables: {masqueradeBit: 3, syncPeriod: 10s}\n"
	c, warnings, err := load(t, file, "--iptables-localhost-nodeports=false")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	sameConfig(t, nftablesDefaults(func(c *Config) { c.Mode = "" }), c)

	chosen, inVain := c.For(ModeIPTables)
	if len(inVain) > 0 {
		t.Errorf("in mode iptables: %q", inVain)
	}
	sameConfig(t, defaults(func(c *Config) {
		c.MasqueradeBit, c.SyncPeriod, c.Plan.LocalhostNodePorts = 3, 10*time.Second, false
	}), chosen)

	chosen, inVain = chosen.For(ModeNFTables)
	if len(inVain) != 1 {
		t.Errorf("in mode nftables: %q, want that the flag has no effect", inVain)
	}
	sameConfig(t, nftablesDefaults(func(*Config) {}), chosen)
}

// The plan is that of the mode which the file is for.
func TestPlanFollowsTheFile(t *testing.T) {
	for file, want := range map[string]Config{
		"":                           nftablesDefaults(func(*Config) {}),
		header + "mode: NFTables\n":  nftablesDefaults(func(*Config) {}),
		header + "mode: iptables\n":  defaults(func(*Config) {}),
		header + "mode: telepathy\n": defaults(func(*Config) {}),
	} {
		got, _, err := load(t, file, "--mode", "plan")
		if err != nil {
			t.Fatal(err)
		}
		want.Mode = ModePlan
		sameConfig(t, want, got)
	}
}
