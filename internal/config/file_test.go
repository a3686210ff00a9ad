package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told is what is said of a file named proxy.yaml, line by line: errors if there are any, else warnings.
func told(text string) []string {
	v := newValues()
	warnings, err := v.parse("proxy.yaml", []byte(text))
	if err == nil {
		var more []string
		_, more, err = v.Resolve()
		warnings = append(warnings, more...)
	}
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	return warnings
}

// What is wrong is told with the file, the line and the field; of several values, all.
func TestWhatIsToldOfAFile(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"wrong types": {
			header + "clusterCIDR: [10.0.0.0/8]\nmode: {a: b}\nnodePortAddresses:\n- primary\n- 7\niptables:\n  masqueradeBit: '14'\n  syncPeriod: 30\n  masqueradeAll: \"no\"\noomScoreAdj: 5000000000\nconntrack: none\nfeatureGates: {AllAlpha: 1}\nlogging: {flushFrequency: soon, verbosity: -1, options: {text: {infoBufferSize: much}}}\nclientConnection: {qps: fast}\nipvs: {excludeCIDRs: 10.0.0.0/8}\n",
			[]string{
				`proxy.yaml:3: clusterCIDR: a list: want a string, in quotes if need be`,
				`proxy.yaml:4: mode: fields: want a string, in quotes if need be`,
				`proxy.yaml:7: nodePortAddresses[1]: 7: want a string, in quotes if need be`,
				`proxy.yaml:9: iptables.masqueradeBit: "14": want a whole number of type int32`,
				`proxy.yaml:10: iptables.syncPeriod: 30: want a string such as "30s"`,
				`proxy.yaml:11: iptables.masqueradeAll: "no": want true or false`,
				`proxy.yaml:12: oomScoreAdj: 5000000000: want a whole number of type int32`,
				`proxy.yaml:13: conntrack: "none": want fields`,
				`proxy.yaml:14: featureGates.AllAlpha: 1: want true or false`,
				`proxy.yaml:15: logging.flushFrequency: "soon": want a string such as "30s", or a whole number of nanoseconds`,
				`proxy.yaml:15: logging.options.text.infoBufferSize: "much": want a quantity such as 64Ki`,
				`proxy.yaml:15: logging.verbosity: -1: want a whole number of type uint32`,
				`proxy.yaml:16: clientConnection.qps: "fast": want a number`,
				`proxy.yaml:17: ipvs.excludeCIDRs: "10.0.0.0/8": want a list`,
			},
		},
		"another version": {
			"kind: KubeProxyConfiguration\n\napiVersion: kubeproxy.config.k8s.io/v1beta1\n",
			[]string{`proxy.yaml:3: apiVersion: "kubeproxy.config.k8s.io/v1beta1", want kubeproxy.config.k8s.io/v1alpha1`},
		},
		"another kind": {
			"apiVersion: v1\nkind: ConfigMap\n",
			[]string{`proxy.yaml:1: apiVersion: "v1", want kubeproxy.config.k8s.io/v1alpha1`, `proxy.yaml:2: kind: "ConfigMap", want KubeProxyConfiguration`},
		},
		"nothing": {"", []string{`proxy.yaml:1: apiVersion: missing, want kubeproxy.config.k8s.io/v1alpha1`, `proxy.yaml:1: kind: missing, want KubeProxyConfiguration`}},
		"values out of range": {
			header + "oomScoreAdj: 1001\nconfigSyncPeriod: -1s\nclientConnection: {burst: -1}\nconntrack:\n  maxPerCore: -1\n  udpTimeout: -1s\nbindAddress: here\nhealthzBindAddress: 0.0.0.0:70000\nmetricsBindAddress: localhost:10249\nlogging: {format: xml}\nshowHiddenMetricsForVersion: '1.30'\nfeatureGates: {WinDSR: false, Teleport: true}\nnodePortAddresses: [all, all]\n",
			[]string{
				`proxy.yaml:15: nodePortAddresses[1]: "all": the list has it already`,
				`proxy.yaml:9: bindAddress: "here": want an IP address`,
				`proxy.yaml:5: clientConnection.burst: -1: want 0 or more`,
				`proxy.yaml:10: healthzBindAddress: "0.0.0.0:70000": "70000" is no port, 1 to 65535, or 0 for none`,
				`proxy.yaml:11: metricsBindAddress: "localhost:10249": "localhost" is no IP address`,
				`proxy.yaml:13: showHiddenMetricsForVersion: "1.30": want 1.36, the version before, or nothing`,
				`proxy.yaml:3: oomScoreAdj: 1001: want -1000 to 1000`,
				`proxy.yaml:7: conntrack.maxPerCore: -1: want 0 or more`,
				`proxy.yaml:8: conntrack.udpTimeout: -1s: want 0 or more`,
				`proxy.yaml:14: featureGates.Teleport: Teleport: kube-proxy 1.37 has no such feature gate`,
				`proxy.yaml:14: featureGates.WinDSR: false: the feature is locked to true`,
				`proxy.yaml:12: logging.format: "xml": want text or json`,
				`proxy.yaml:4: configSyncPeriod: -1s: want more than 0`,
			},
		},
		"a second document": {
			header + "---\n" + header,
			[]string{"proxy.yaml:4: only the first document of a configuration file is read"},
		},
		"a format behind a gate": {
			header + "logging: {format: json}\nfeatureGates: {LoggingBetaOptions: false}\n",
			[]string{"proxy.yaml:3: logging.format: json: the feature gate LoggingBetaOptions is off"},
		},
		"fields that are old or misspelt": {
			header + "udpIdleTimeout: 250ms\nresourceContainer: /kube-proxy\nconntrack: {max: 5}\nhealtzBindAddress: 0.0.0.0\niptables: {MasqueradeAll: true, masqueradBit: 1, unheard: of}\n",
			[]string{
				"proxy.yaml:3: udpIdleTimeout: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1; it was of kube-proxy's mode userspace; sluice.userspace.udpIdleTimeout is that of Sluice's",
				"proxy.yaml:4: resourceContainer: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1; kube-proxy has not had it since 1.24",
				"proxy.yaml:5: conntrack.max: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1; conntrack.maxPerCore and conntrack.min took its place",
				"proxy.yaml:6: healtzBindAddress: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1; is healthzBindAddress meant?",
				"proxy.yaml:7: iptables.MasqueradeAll: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1; is masqueradeAll meant?",
				"proxy.yaml:7: iptables.masqueradBit: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1; is masqueradeBit meant?",
				"proxy.yaml:7: iptables.unheard: no such field in KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, told(tt.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is far too large is not parsed, which would take a hundred times as much memory.
func TestFileWithoutEnd(t *testing.T) {
	v := newValues()
	_, err := v.read("/dev/zero")
	if err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("error %v", err)
	}
}
