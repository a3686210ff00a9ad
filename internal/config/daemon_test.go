package config

import (
	"bufio"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// flagLines are kube-proxy's flags, each with a value.
func flagLines(t *testing.T) (lines []string) {
	t.Helper()
	file, err := os.Open("testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if line := scanner.Text(); !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// exported compares what the rest of the program sees of a Config.
var exported = cmp.Options{cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}), cmpopts.IgnoreUnexported(Config{})}

// Every flag of kube-proxy's has an effect, or a warning says why not, or it is of mode ipvs.
func TestEveryFlagOfKubeProxy(t *testing.T) {
	nothing, _, err := load(t, "", inMode...)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range flagLines(t) {
		t.Run(line, func(t *testing.T) {
			if strings.HasPrefix(line, "--config=") {
				if _, _, err := load(t, "", line); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			got, warnings, err := load(t, "", append(slices.Clip(inMode), line)...)
			if err != nil {
				t.Fatal(err)
			}
			if cmp.Equal(nothing, got, exported) && len(warnings) == 0 && !strings.HasPrefix(line, "--ipvs-") {
				t.Error("it changes nothing and nothing is said")
			}
			flag, _, _ := strings.Cut(line, "=")
			for _, w := range warnings {
				if !strings.HasPrefix(w, flag) {
					t.Errorf("warning %q is of another flag", w)
				}
			}
		})
	}
}

// Underscores are dashes, and -v has a level.
func TestOtherSpellingsOfFlags(t *testing.T) {
	c, _, err := load(t, "", "--oom_score_adj=-5", "-v4")
	if err != nil || c.Host.OOMScoreAdj != -5 || c.Log.Verbosity != 4 {
		t.Errorf("oom score %d, verbosity %d, error %v", c.Host.OOMScoreAdj, c.Log.Verbosity, err)
	}
}

// Every field of the API has a setting, and every setting a field.
func TestEveryFieldHasASetting(t *testing.T) {
	var want []string
	var walk func(prefix string, of reflect.Type)
	walk = func(prefix string, of reflect.Type) {
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch section := field.Type.Kind() == reflect.Struct; {
			case field.Name == "TypeMeta":
			case field.Anonymous:
				walk(prefix, field.Type)
			case section && !reflect.PointerTo(field.Type).Implements(reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()):
				walk(prefix+name+".", field.Type)
			default:
				want = append(want, prefix+name)
			}
		}
	}
	v := newValues()
	walk("", reflect.TypeOf(v.as))
	var got []string
	for _, s := range settings {
		got = append(got, s.path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-fields +settings):\n%s", diff)
	}
}

func TestAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want Serve
	}{
		"IPv6":                       {file: header + "bindAddress: '::'\n", want: Serve{Health: "[::]:10256", Metrics: "[::1]:10249"}},
		"IPv6 by a flag":             {file: header + "bindAddress: 0.0.0.0\n", args: []string{"--bind-address=fd00::1"}, want: Serve{Health: "[::]:10256", Metrics: "[::1]:10249"}},
		"without a port":             {file: header + "healthzBindAddress: 127.0.0.1\nmetricsBindAddress: '::'\n", want: Serve{Health: "127.0.0.1:10256", Metrics: "[::]:10249"}},
		"zeros in front":             {args: []string{"--healthz-bind-address=127.0.0.01:0010"}, want: Serve{Health: "127.0.0.1:10", Metrics: "127.0.0.1:10249"}},
		"none":                       {args: []string{"--healthz-bind-address=0.0.0.0:0"}, want: Serve{Metrics: "127.0.0.1:10249"}},
		"none by the former flags":   {file: header + "metricsBindAddress: 0.0.0.0:1\n", args: []string{"--healthz-port=0", "--metrics-port=0"}},
		"another port":               {args: []string{"--metrics-port=99"}, want: Serve{Health: "0.0.0.0:10256", Metrics: "127.0.0.1:99"}},
		"a port beside one":          {args: []string{"--metrics-port=99", "--metrics-bind-address=[::1]:98"}, want: Serve{Health: "0.0.0.0:10256", Metrics: "[::1]:98"}},
		"an empty flag":              {args: []string{"--healthz-bind-address="}, want: Serve{Health: "0.0.0.0:10256", Metrics: "127.0.0.1:10249"}},
		"hard failure and profiling": {args: []string{"--profiling", "--bind-address-hard-fail"}, want: Serve{Health: "0.0.0.0:10256", Metrics: "127.0.0.1:10249", HardFail: true, Profiling: true}},
	} {
		c, warnings, err := load(t, tt.file, tt.args...)
		if err != nil || len(warnings) > 0 || c.Serve != tt.want {
			t.Errorf("%s: %+v, warnings %q, error %v; want %+v", name, c.Serve, warnings, err, tt.want)
		}
	}
}

// What k3s starts kube-proxy with leaves the machine's connection tracking alone.
func TestFlagsOfK3s(t *testing.T) {
	c, warnings, err := load(t, "", "--cluster-cidr=10.42.0.0/16", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-close-wait=0s",
		"--conntrack-tcp-timeout-established=0s", "--healthz-bind-address=127.0.0.1", "--hostname-override=node-a",
		"--kubeconfig=/var/lib/rancher/k3s/agent/kubeproxy.kubeconfig", "--proxy-mode=iptables")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	sameConfig(t, defaults(func(c *Config) {
		c.Plan.NodeName, c.Plan.ClusterCIDRs = "node-a", prefixes("10.42.0.0/16")
		c.Client.Kubeconfig = "/var/lib/rancher/k3s/agent/kubeproxy.kubeconfig"
		c.Serve.Health = "127.0.0.1:10256"
		c.Host.Conntrack = Conntrack{Min: 131072}
	}), c)
}

// A file of kubeadm's says where the API server and the pods are, and nothing else.
func TestFileOfKubeadm(t *testing.T) {
	text, err := os.ReadFile("testdata/kubeadm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := load(t, string(text))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	sameConfig(t, nftablesDefaults(func(c *Config) {
		c.Mode, c.Client.Kubeconfig, c.Plan.ClusterCIDRs = "", "/var/lib/kube-proxy/kubeconfig.conf", prefixes("10.244.0.0/16")
	}), c)
}

func TestFeatureGates(t *testing.T) {
	c, warnings, err := load(t, header+"featureGates: {AllowServiceExternalIPs: true, AllBeta: false, LoggingBetaOptions: true}\n",
		"--feature-gates=AllowServiceExternalIPs=false", "--feature-gates", "KubeProxyIPVS=false,NFTablesNetlink=false")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"AllowServiceExternalIPs": false, "AllBeta": false, "NFTablesNetlink": false, "LoggingBetaOptions": true,
		"KubeProxyIPVS": false, "AllAlpha": false, "KubeProxyNFTablesLocalhostNodePorts": false, "NFTablesProxyMode": true,
	} {
		if on, known := c.Features[name]; !known || on != want {
			t.Errorf("%s is known: %t, on: %t; want %t", name, known, on, want)
		}
	}
	if !c.Plan.IgnoreExternalIPs || FeatureStage("NFTablesNetlink") != "BETA" {
		t.Errorf("external IPs are ignored: %t; NFTablesNetlink is %s", c.Plan.IgnoreExternalIPs, FeatureStage("NFTablesNetlink"))
	}
	if want := []string{"--feature-gates: NFTablesNetlink=false has no effect: Sluice speaks to nf_tables over netlink in any case"}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
}

func TestBindAddressIsTheNodes(t *testing.T) {
	c, _, err := load(t, header+"bindAddress: 192.0.2.7\n", inMode...)
	if err != nil {
		t.Fatal(err)
	}
	sameConfig(t, defaults(func(c *Config) { c.Plan.NodeIP = netip.MustParseAddr("192.0.2.7") }), c)
}

// A pause of none is said by a flag, and by the file that is written of it.
func TestNoPause(t *testing.T) {
	c, _, err := load(t, header+"iptables: {minSyncPeriod: 5s}\n", "--iptables-min-sync-period=0", "--mode=iptables")
	if err != nil || c.MinSyncPeriod != 0 || c.KubeProxy().IPTables.MinSyncPeriod.Duration != time.Nanosecond {
		t.Errorf("pause %v, written as %v, error %v", c.MinSyncPeriod, c.KubeProxy().IPTables.MinSyncPeriod, err)
	}
}
