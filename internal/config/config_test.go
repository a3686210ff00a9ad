package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"sluice/internal/plan"
)

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

// load reads a configuration file with this text (none if empty) and flags.
func load(t *testing.T, text string, args ...string) (Config, []string, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := NewFlags(set)
	f.Mode("")
	f.Daemon()
	if text != "" {
		path := filepath.Join(t.TempDir(), "proxy.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Load()
}

func prefixes(texts ...string) (ps []netip.Prefix) {
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// defaults is the Config of mode iptables when nothing else is said, with changes.
func defaults(edit func(*Config)) Config {
	c := Config{
		Plan: plan.Config{LocalhostNodePorts: true}, Mode: ModeIPTables, MasqueradeBit: 14,
		SyncPeriod: 30 * time.Second, MinSyncPeriod: time.Second,
		Client: Client{ContentType: "application/vnd.kubernetes.protobuf", QPS: 5, Burst: 10},
		Serve:  Serve{Health: "0.0.0.0:10256", Metrics: "127.0.0.1:10249"},
		Host: Host{OOMScoreAdj: -999, Conntrack: Conntrack{
			MaxPerCore: 32768, Min: 131072, TCPEstablished: 24 * time.Hour, TCPCloseWait: time.Hour,
		}},
		Log: Log{Format: FormatText},
	}
	edit(&c)
	return c
}

// inMode is the start of every command line that defaults are about.
var inMode = []string{"--mode", ModeIPTables}

func sameConfig(t *testing.T, want, got Config) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}), cmpopts.IgnoreUnexported(Config{}), cmpopts.IgnoreFields(Config{}, "Features")); diff != "" {
		t.Error(diff)
	}
}

func TestLoad(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want func(*Config)
	}{
		"nothing":       {want: func(*Config) {}},
		"an empty file": {file: header, want: func(*Config) {}},
		"interface prefix": {
			file: header + "mode: nftables\nhostnameOverride: node-a\ndetectLocalMode: InterfaceNamePrefix\ndetectLocal:\n  interfaceNamePrefix: azv\n",
			want: func(c *Config) {
				c.Plan.NodeName, c.Plan.DetectLocal, c.Plan.InterfaceNamePrefix = "node-a", plan.DetectInterfaceNamePrefix, "azv"
			},
		},
		"bridge by flags": {
			args: []string{"--detect-local-mode", "BridgeInterface", "--pod-bridge-interface", "cni0"},
			want: func(c *Config) { c.Plan.DetectLocal, c.Plan.BridgeInterface = plan.DetectBridgeInterface, "cni0" },
		},
		"node ports of both families": {
			file: header + "nodePortAddresses: ['2001:db8:10::/64', 192.168.10.0/24, '::1/128']\n",
			want: func(c *Config) {
				c.Plan.NodePortAddresses.Prefixes = prefixes("2001:db8:10::/64", "192.168.10.0/24", "::1/128")
			},
		},
		"node port keywords beside a range": {
			args: []string{"--nodeport-addresses", "primary,localhost,all,10.0.0.0/8"},
			want: func(c *Config) {
				c.Plan.NodePortAddresses = plan.NodePortAddresses{All: true, Primary: true, Localhost: true, Prefixes: prefixes("10.0.0.0/8")}
			},
		},
		"cluster CIDRs, IPv6 first": {
			file: header + "clusterCIDR: fd00:244::/56,10.244.0.0/16\n",
			want: func(c *Config) { c.Plan.ClusterCIDRs = prefixes("fd00:244::/56", "10.244.0.0/16") },
		},
		"cluster CIDR of one family": {
			file: header + "clusterCIDR: fd00:244::/56\n",
			want: func(c *Config) { c.Plan.ClusterCIDRs = prefixes("fd00:244::/56") },
		},
		"node CIDR": {
			file: header + "detectLocalMode: NodeCIDR\n", want: func(c *Config) { c.Plan.DetectLocal = plan.DetectNodeCIDR },
		},
		"hostname in another spelling": {
			file: header + "hostnameOverride: ' NODE-A '\n", want: func(c *Config) { c.Plan.NodeName = "node-a" },
		},
		"iptables section": {
			file: header + "iptables: {masqueradeBit: 0, masqueradeAll: true, localhostNodePorts: false, syncPeriod: 10s, minSyncPeriod: 2s}\n",
			want: func(c *Config) {
				c.MasqueradeBit, c.Plan.MasqueradeAll, c.Plan.LocalhostNodePorts = 0, true, false
				c.SyncPeriod, c.MinSyncPeriod = 10*time.Second, 2*time.Second
			},
		},
		"empty values say nothing": {
			file: header + "nodePortAddresses: null\niptables: {masqueradeBit: null, localhostNodePorts: null, syncPeriod: 0s, minSyncPeriod: 0s}\n",
			want: func(*Config) {},
		},
		"a flag wins over the file": {
			file: header + "hostnameOverride: node-a\niptables: {masqueradeAll: true, minSyncPeriod: 2s}\nclusterCIDR: 10.1.0.0/16\n",
			args: []string{"--node", "node-b", "--masquerade-all=false", "--iptables-min-sync-period", "0s", "--iptables-masquerade-bit", "15"},
			want: func(c *Config) {
				c.Plan.NodeName, c.Plan.ClusterCIDRs, c.MinSyncPeriod, c.MasqueradeBit = "node-b", prefixes("10.1.0.0/16"), 0, 15
			},
		},
		"kube-proxy's names of flags": {
			args: []string{"--hostname-override", "Node-B", "--proxy-mode", "IPTables", "--cluster-cidr", "10.1.2.3/16"},
			want: func(c *Config) { c.Plan.NodeName, c.Plan.ClusterCIDRs = "node-b", prefixes("10.1.0.0/16") },
		},
		"the section of another mode": {
			file: header + "nftables: {masqueradeBit: 77, masqueradeAll: true, syncPeriod: 10s, minSyncPeriod: 20s}\n", want: func(*Config) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := load(t, tt.file, append(slices.Clip(inMode), tt.args...)...)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			sameConfig(t, defaults(tt.want), got)
		})
	}
}

// Every wrong value is named, with the field or flag that it stands in.
func TestErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want []string
	}{
		"both bad entries": {
			file: header + "nodePortAddresses: ['192.168.10.11', '192.168.0.0/33', 10.0.0.0/8]\n",
			want: []string{`proxy.yaml:3: nodePortAddresses[0]: "192.168.10.11"`, `proxy.yaml:3: nodePortAddresses[1]: "192.168.0.0/33"`},
		},
		"several fields": {
			file: header + "clusterCIDR: nonsense\ndetectLocalMode: Guess\niptables: {masqueradeBit: 32}\n",
			want: []string{`clusterCIDR: "nonsense"`, `detectLocalMode: "Guess"`, "iptables.masqueradeBit: 32"},
		},
		"two ranges of one family": {args: []string{"--cluster-cidr", "10.1.0.0/16,10.2.0.0/16"}, want: []string{"--cluster-cidr", "second IPv4 range"}},
		"no interface":             {args: []string{"--detect-local-mode", "BridgeInterface", "--pod-bridge-interface", "cni 0"}, want: []string{"--pod-bridge-interface", `"cni 0"`}},
		"prefix too long":          {args: []string{"--detect-local-mode", "InterfaceNamePrefix", "--pod-interface-name-prefix", "sixteencharacte"}, want: []string{"--pod-interface-name-prefix", "14 characters"}},
		"no bridge":                {args: []string{"--detect-local-mode", "BridgeInterface"}, want: []string{"--detect-local-mode", "--pod-bridge-interface"}},
		"no prefix":                {args: []string{"--detect-local-mode", "InterfaceNamePrefix"}, want: []string{"--pod-interface-name-prefix"}},
		"unknown mode":             {file: header + "mode: kernelspace\n", want: []string{`proxy.yaml:3: mode: "kernelspace": Sluice has no such mode; want nftables, iptables, ipvs or userspace`}},
		"ipvs without its gate":    {file: header + "mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}\n", want: []string{"proxy.yaml:3: mode: ipvs: the feature gate KubeProxyIPVS is off"}},
		"what ipvs is told": {
			file: header + "ipvs: {scheduler: Round Robin, excludeCIDRs: [10.0.0.0/8, ten], tcpTimeout: -1s}\n",
			want: []string{`ipvs.scheduler: "Round Robin"`, `ipvs.excludeCIDRs[1]: "ten"`, "ipvs.tcpTimeout: -1s: want 0 or more"},
		},
		"what userspace is told": {
			file: header + "portRange: 200-100\nsluice: {userspace: {maxConnections: -1, drainTimeout: -1s}}\n",
			want: []string{`proxy.yaml:3: portRange: "200-100": want a range of ports`, "sluice.userspace.maxConnections: -1", "sluice.userspace.drainTimeout: -1s"},
		},
		"a bit of the mode in use":               {file: header + "mode: nftables\nnftables: {masqueradeBit: 32}\n", want: []string{"nftables.masqueradeBit: 32"}},
		"a bit of a mode that may come into use": {file: header + "iptables: {masqueradeBit: -1}\n", want: []string{"iptables.masqueradeBit: -1"}},
		"periods in the wrong order": {
			args: []string{"--iptables-sync-period", "1s", "--iptables-min-sync-period", "2s"},
			want: []string{"--iptables-min-sync-period: 2s is longer than the sync period of 1s"},
		},
		"negative periods":         {args: []string{"--iptables-sync-period", "-1s", "--iptables-min-sync-period", "-2s"}, want: []string{"--iptables-sync-period: -1s", "--iptables-min-sync-period: -2s"}},
		"another kind":             {file: "apiVersion: v1\nkind: Service\n", want: []string{"proxy.yaml", `"Service"`, "KubeProxyConfiguration"}},
		"a wrong type":             {file: header + "clusterCIDR: [10.0.0.0/8]\n", want: []string{"proxy.yaml", "clusterCIDR"}},
		"a period without unit":    {file: header + "iptables: {syncPeriod: 30}\n", want: []string{"proxy.yaml", `want a string such as "30s"`}},
		"no YAML":                  {file: "a: [", want: []string{"proxy.yaml"}},
		"a list":                   {file: "[]", want: []string{"proxy.yaml"}},
		"a file that is not there": {args: []string{"--config", "/nonexistent/proxy.yaml"}, want: []string{"/nonexistent/proxy.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, tt.file, tt.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
		})
	}
}

// What has no effect is said.
func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want []string
	}{
		"fields that Sluice does not act on": {
			file: header + "\nlogging: {flushFrequency: 1s, vmodule: [{filePattern: a, verbosity: 3}]}\nshowHiddenMetricsForVersion: '1.36'\n",
			want: []string{
				"proxy.yaml:4: logging.flushFrequency: no effect: Sluice writes", "proxy.yaml:4: logging.vmodule: no effect",
				"proxy.yaml:5: showHiddenMetricsForVersion: no effect",
			},
		},
		"kubeadm's empty fields": {
			file: header + "bindAddress: ''\nclientConnection: {kubeconfig: '', qps: 0}\nconntrack: {maxPerCore: null, tcpBeLiberal: false, udpTimeout: 0s}\nenableProfiling: false\nipvs: {excludeCIDRs: null}\n",
		},
		"sections of other modes":            {file: header + "mode: iptables\nipvs: {scheduler: wrr}\nnftables: {masqueradeAll: true}\nwinkernel: {networkName: x}\n"},
		"kubeadm's section of mode iptables": {file: header + "mode: nftables\niptables: {masqueradeBit: 14, localhostNodePorts: true, syncPeriod: 30s}\n"},
		"flags of mode iptables": {
			args: []string{"--mode", "nftables", "--iptables-masquerade-bit", "15", "--iptables-localhost-nodeports"},
			want: []string{"--iptables-masquerade-bit has no effect in mode nftables; nftables.masqueradeBit", "--iptables-localhost-nodeports has no effect"},
		},
		"unknown fields": {
			file: header + "clusterCidr: 10.0.0.0/8\niptables: {bit: 3}\nnftables: {localhostNodePorts: true}\n",
			want: []string{"clusterCidr: no such field", "iptables.bit: no such field", "nftables.localhostNodePorts: no such field"},
		},
		"a field given twice": {file: header + "clusterCIDR: 10.0.0.0/8\nclusterCIDR: 10.1.0.0/16\n", want: []string{`"clusterCIDR" already set`}},
		"a setting of another mode of detection": {
			args: []string{"--detect-local-mode", "NodeCIDR", "--cluster-cidr", "10.0.0.0/8", "--pod-bridge-interface", "cni0"},
			want: []string{"--cluster-cidr", "--pod-bridge-interface"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := load(t, tt.file, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) != len(tt.want) {
				t.Fatalf("warnings %q, want %d", warnings, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(warnings[i], want) {
					t.Errorf("warning %q, want %q in it", warnings[i], want)
				}
			}
		})
	}
}
