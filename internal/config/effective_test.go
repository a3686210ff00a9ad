package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// readBack is the Config of a file with this text.
func readBack(text []byte) (Config, []string, error) {
	v := newValues()
	warnings, err := v.parse("written.yaml", text)
	if err != nil {
		return Config{}, warnings, err
	}
	c, more, err := v.Resolve()
	return c, append(warnings, more...), err
}

// What is written of any command line reads as what that says, and once written it stays as it is.
func TestWrittenConfigurationReadsTheSame(t *testing.T) {
	lines := slices.DeleteFunc(flagLines(t), func(s string) bool { return strings.HasPrefix(s, "--config=") || strings.HasPrefix(s, "--master=") })
	lines = append(lines, "--iptables-min-sync-period=0", "--kube-api-qps=0", "--kube-api-burst=0", "--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0", "--iptables-masquerade-bit=0", "--proxy-mode=iptables", "--mode=", "--kube-api-qps=-1",
		"--metrics-bind-address=[::1]:0", "--bind-address=fd00::1", "--oom-score-adj=0", "--nodeport-addresses=", "--hostname-override= NODE-A ")
	rapid.Check(t, func(r *rapid.T) {
		args := rapid.SliceOfN(rapid.SampledFrom(lines), 0, 12).Draw(r, "flags")
		want, _, err := load(t, "", append(args, "--pod-bridge-interface=cni0")...)
		if err != nil {
			r.Skip("it is refused")
		}
		text, err := want.YAML()
		if err != nil {
			r.Fatal(err)
		}
		got, _, err := readBack(text)
		if err != nil {
			r.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, exported); diff != "" {
			r.Fatalf("(-want +got):\n%s\n%s", diff, text)
		}
		for _, mode := range []string{ModeIPTables, ModeNFTables} {
			w, _ := want.For(mode)
			g, _ := got.For(mode)
			if diff := cmp.Diff(w, g, exported); diff != "" {
				r.Fatalf("in mode %s (-want +got):\n%s\n%s", mode, diff, text)
			}
		}
		again, err := got.YAML()
		if err != nil || string(again) != string(text) {
			r.Fatalf("error %v; written again it is another:\n%s", err, cmp.Diff(string(text), string(again)))
		}
	})
}

// The defaults as written warn of nothing, and a flag that no field says is named.
func TestWrittenDefaultsAreQuiet(t *testing.T) {
	c, _, err := load(t, "", "--master=https://192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if want := "# No field says --master=\"https://192.0.2.1\".\n"; !strings.HasPrefix(string(text), want) {
		t.Errorf("the file begins otherwise than %q:\n%s", want, text)
	}
	if _, warnings, err := readBack(text); err != nil || len(warnings) > 0 {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
}

// The effective configuration has the mode that was chosen.
func TestEffectiveMode(t *testing.T) {
	c, _, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	chosen, _ := c.For(ModeIPTables)
	if is := chosen.KubeProxy().Mode; is != ModeIPTables {
		t.Errorf("mode %q", is)
	}
	if is := c.KubeProxy().Mode; is != "" {
		t.Errorf("mode %q before one was chosen", is)
	}
}

// The effective configuration has what is in force, where a file that was read since cannot change that.
func TestEffectiveUntilTheNextStart(t *testing.T) {
	started, _, err := load(t, "", "--kubeconfig=/a", "--kube-api-qps=7", "--hostname-override=a")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := load(t, "", "--kubeconfig=/b", "--logging-format=json", "--hostname-override=b")
	if err != nil {
		t.Fatal(err)
	}
	c.Client, c.Log.Format, c.Plan.NodeName = started.Client, started.Log.Format, started.Plan.NodeName
	if diff := cmp.Diff(started.KubeProxy(), c.KubeProxy()); diff != "" {
		t.Error(diff)
	}
}

// It has the mark and the setting that the rules in force are made for, where other rules could not be had.
func TestEffectiveMark(t *testing.T) {
	for _, mode := range []string{ModeIPTables, ModeNFTables} {
		c, _, err := load(t, "", "--mode="+mode, "--conntrack-tcp-be-liberal")
		if err != nil {
			t.Fatal(err)
		}
		c.MasqueradeBit, c.Host.Conntrack.BeLiberal = 7, false
		is := c.KubeProxy()
		want := map[string][2]int32{ModeIPTables: {7, 14}, ModeNFTables: {14, 7}}[mode]
		if got := [2]int32{*is.IPTables.MasqueradeBit, *is.NFTables.MasqueradeBit}; got != want || is.Conntrack.TCPBeLiberal {
			t.Errorf("mode %s: marks %v, tcpBeLiberal %v; want %v and false", mode, got, is.Conntrack.TCPBeLiberal, want)
		}
	}
}

// Any file is refused or read, and what is read can be written and read again.
func FuzzFile(f *testing.F) {
	text, err := os.ReadFile("testdata/kubeadm.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(header + "featureGates: {AllAlpha: true}\nlogging: {flushFrequency: 5000000000, vmodule: [{filePattern: a, verbosity: 1}]}\n"))
	f.Add([]byte(header + "iptables: &a {syncPeriod: 1s}\nnftables: *a\nnodePortAddresses: [primary, '::/0']\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, err := readBack(text)
		if err != nil {
			return
		}
		written, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := readBack(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if diff := cmp.Diff(c, again, exported); diff != "" {
			t.Errorf("(-read +written and read again):\n%s", diff)
		}
	})
}
