package config

import (
	"slices"
	"time"
)

// setting is a field of KubeProxyConfiguration v1alpha1, and the flag that says the same.
type setting struct {
	path string // of the field
	// flag is its name; empty: there is none. It sets the fields at also too.
	flag string
	also []string
	// is is the value when nothing is said, of the type that the flag has.
	is    any
	usage string
	// everywhere puts the flag on every verb that has a plan.
	everywhere bool
	// vain says why Sluice does nothing with it. It is told, unless the setting is quiet because it speaks of another
	// system.
	vain  string
	quiet bool
	// restart says why it takes effect only when the daemon starts.
	restart string
}

// Why some settings have no effect, or only at the start.
const (
	ofWindows  = "of Windows"
	connection = "the connection to the API server is made once"
	unbuffered = "Sluice writes each line of the log at once, to standard error"
)

// settings are all fields that there are, in the order of kube-proxy's API but for TypeMeta.
var settings = slices.Concat(daemonSettings, modeSettings, pathSettings, hostSettings)

var daemonSettings = []setting{
	{path: "featureGates", usage: "feature gates, on or off"},
	{path: "clientConnection.kubeconfig", flag: "kubeconfig", is: "", usage: "the `file` that says how the API server is reached; default: the service account of the pod", restart: connection},
	{path: "clientConnection.acceptContentTypes", is: "", usage: "the Accept header of requests to the API server", restart: connection},
	{path: "clientConnection.contentType", flag: "kube-api-content-type", is: "application/vnd.kubernetes.protobuf", usage: "the content `type` of requests to the API server", restart: connection},
	{path: "clientConnection.qps", flag: "kube-api-qps", is: float32(5), usage: "how many requests a second the API server gets for long", restart: connection},
	{path: "clientConnection.burst", flag: "kube-api-burst", is: int32(10), usage: "how many requests the API server gets at once", restart: connection},
	{path: "logging.format", flag: "logging-format", is: FormatText, usage: "the `format` of the log: text or json", restart: "the log is opened once"},
	{path: "logging.flushFrequency", flag: "log-flush-frequency", is: 5 * time.Second, usage: "how often the log is written out", vain: unbuffered},
	{path: "logging.verbosity", usage: "the level of the log: the higher, the more is told"},
	{path: "logging.vmodule", usage: "the level of the log by source file, as pattern=N", vain: "the log of Sluice is one, whatever file a line comes from"},
	{path: "logging.options.text.splitStream", flag: "log-text-split-stream", is: false, usage: "write errors to standard error and the rest to standard output", vain: unbuffered},
	{path: "logging.options.text.infoBufferSize", usage: "the size of the buffer of the log", vain: unbuffered},
	{path: "logging.options.json.splitStream", flag: "log-json-split-stream", is: false, usage: "write errors to standard error and the rest to standard output", vain: unbuffered},
	{path: "logging.options.json.infoBufferSize", usage: "the size of the buffer of the log", vain: unbuffered},
	{path: "hostnameOverride", flag: "hostname-override", is: "", everywhere: true, usage: "the `name` of this node; the same as --node", restart: "all that is watched of the API depends on the node"},
	{path: "bindAddress", flag: "bind-address", is: "0.0.0.0", usage: "the node's own `address`, in place of its Node object's first of the family; nothing is bound to it"},
	{path: "healthzBindAddress", flag: "healthz-bind-address", is: "", usage: "the `address` of /healthz and /livez; port 0: none; default: 0.0.0.0:10256"},
	{path: "metricsBindAddress", flag: "metrics-bind-address", is: "", usage: "the `address` of /metrics; port 0: none; default: 127.0.0.1:10249"},
	{path: "bindAddressHardFail", flag: "bind-address-hard-fail", is: false, usage: "end if --healthz-bind-address or --metrics-bind-address cannot be listened at"},
	{path: "enableProfiling", flag: "profiling", is: false, usage: "serve /debug/pprof beside /metrics"},
	{path: "showHiddenMetricsForVersion", flag: "show-hidden-metrics-for-version", is: "", usage: "the previous minor `version`, whose hidden metrics are to be shown", vain: "no metric of Sluice is hidden"},
}

var modeSettings = []setting{
	{path: "mode", is: "", usage: "how to do it: nftables, iptables, ipvs or userspace; default: nftables where the kernel can, else iptables"},
	{path: "iptables.masqueradeBit", flag: "iptables-masquerade-bit", everywhere: true, is: int32(14), usage: "the `bit` of the packet mark that asks for masquerading, 0 to 31; of mode iptables"},
	{path: "iptables.masqueradeAll", flag: "masquerade-all", also: []string{"nftables.masqueradeAll"}, everywhere: true, is: false, usage: "rewrite the source of everything that goes to a cluster IP"},
	{path: "iptables.localhostNodePorts", flag: "iptables-localhost-nodeports", everywhere: true, is: true, usage: "serve node ports on 127.0.0.0/8 too; of modes iptables and userspace"},
	{path: "iptables.syncPeriod", flag: "iptables-sync-period", also: []string{"nftables.syncPeriod"}, everywhere: true, is: 30 * time.Second, usage: "how often the kernel's rules are read back and repaired, in every mode"},
	{path: "iptables.minSyncPeriod", flag: "iptables-min-sync-period", also: []string{"nftables.minSyncPeriod"}, everywhere: true, is: time.Second, usage: "the longest pause between two writes to the kernel, in every mode"},
	{path: "ipvs.syncPeriod", flag: "ipvs-sync-period", is: 30 * time.Second, usage: "how often the kernel is read back and repaired"},
	{path: "ipvs.minSyncPeriod", flag: "ipvs-min-sync-period", is: time.Duration(0), usage: "the longest pause between two writes to the kernel"},
	{path: "ipvs.scheduler", flag: "ipvs-scheduler", everywhere: true, is: "", usage: "the kernel's `name` of how mode ipvs spreads connections: rr, wrr, lc, wlc, sh, mh, …; default: rr"},
	{path: "ipvs.excludeCIDRs", flag: "ipvs-exclude-cidrs", is: []string(nil), usage: "the `ranges` of addresses whose virtual servers mode ipvs leaves alone"},
	{path: "ipvs.strictARP", flag: "ipvs-strict-arp", is: false, usage: "answer ARP for an address on the interface alone that has it; of mode ipvs"},
	{path: "ipvs.tcpTimeout", flag: "ipvs-tcp-timeout", is: time.Duration(0), usage: "how long ipvs remembers an idle TCP connection; 0: leave it"},
	{path: "ipvs.tcpFinTimeout", flag: "ipvs-tcpfin-timeout", is: time.Duration(0), usage: "how long ipvs remembers a TCP connection that was closed; 0: leave it"},
	{path: "ipvs.udpTimeout", flag: "ipvs-udp-timeout", is: time.Duration(0), usage: "how long ipvs remembers an idle UDP flow; 0: leave it"},
	{path: "nftables.masqueradeBit", is: int32(14), usage: "the bit of the packet mark that asks for masquerading, 0 to 31"},
	{path: "nftables.masqueradeAll", is: false, usage: "rewrite the source of everything that goes to a cluster IP"},
	{path: "nftables.syncPeriod", is: 30 * time.Second, usage: "how often the kernel's rules are read back and repaired"},
	{path: "nftables.minSyncPeriod", is: time.Second, usage: "the longest pause between two writes to the kernel"},
	{path: "winkernel.networkName", is: "", usage: ofWindows, vain: ofWindows, quiet: true},
	{path: "winkernel.sourceVip", is: "", usage: ofWindows, vain: ofWindows, quiet: true},
	{path: "winkernel.enableDSR", is: false, usage: ofWindows, vain: ofWindows, quiet: true},
	{path: "winkernel.rootHnsEndpointName", is: "", usage: ofWindows, vain: ofWindows, quiet: true},
	{path: "winkernel.forwardHealthCheckVip", is: false, usage: ofWindows, vain: ofWindows, quiet: true},
}

var pathSettings = []setting{
	{path: "detectLocalMode", flag: "detect-local-mode", everywhere: true, is: "ClusterCIDR", usage: "how pods are told from other clients: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix"},
	{path: "detectLocal.bridgeInterface", flag: "pod-bridge-interface", everywhere: true, is: "", usage: "the bridge `interface` of the pods, for detect-local-mode BridgeInterface"},
	{path: "detectLocal.interfaceNamePrefix", flag: "pod-interface-name-prefix", everywhere: true, is: "", usage: "the `prefix` of the names of the pods' interfaces, for detect-local-mode InterfaceNamePrefix"},
	{path: "clusterCIDR", flag: "cluster-cidr", everywhere: true, is: "", usage: "the pods' address `range`; two, of both families, are separated by a comma"},
	{path: "nodePortAddresses", flag: "nodeport-addresses", everywhere: true, is: []string(nil), usage: "the node's `addresses` that accept node ports: ranges, and the words primary, localhost and all; default: primary in mode nftables, all in the others"},
}

var hostSettings = []setting{
	{path: "oomScoreAdj", flag: "oom-score-adj", is: int32(-999), usage: "how soon the kernel ends the daemon for want of memory, -1000 to 1000"},
	{path: "conntrack.maxPerCore", flag: "conntrack-max-per-core", is: int32(32 << 10), usage: "how many connections are tracked for each CPU; 0: leave the limit, and disregard conntrack-min"},
	{path: "conntrack.min", flag: "conntrack-min", is: int32(128 << 10), usage: "how many connections are tracked at least, whatever there is of CPUs"},
	{path: "conntrack.tcpEstablishedTimeout", flag: "conntrack-tcp-timeout-established", is: 24 * time.Hour, usage: "how long an idle TCP connection is remembered; 0: leave it"},
	{path: "conntrack.tcpCloseWaitTimeout", flag: "conntrack-tcp-timeout-close-wait", is: time.Hour, usage: "how long a TCP connection closed by one side is remembered; 0: leave it"},
	{path: "conntrack.tcpBeLiberal", flag: "conntrack-tcp-be-liberal", is: false, usage: "take TCP packets outside the window for valid"},
	{path: "conntrack.udpTimeout", flag: "conntrack-udp-timeout", is: time.Duration(0), usage: "how long a UDP flow without an answer is remembered; 0: leave it"},
	{path: "conntrack.udpStreamTimeout", flag: "conntrack-udp-timeout-stream", is: time.Duration(0), usage: "how long a UDP flow with answers is remembered; 0: leave it"},
	{path: "configSyncPeriod", flag: "config-sync-period", is: 15 * time.Minute, usage: "how often all objects of the API are gone through again", vain: "Sluice compares each object with what it knows of it, so none has to be gone through again"},
	{path: "portRange", flag: "proxy-port-range", everywhere: true, is: "", usage: "the `range` of the proxy's own ports in mode userspace; default: 10000-29999"},
	{path: "sluice.answerPing", flag: "cluster-ip-ping", everywhere: true, is: false, usage: "have cluster IPs answer ping, from this node; in mode ipvs they always do"},
	{path: "sluice.userspace.maxConnections", flag: "userspace-max-connections", is: int32(0), usage: "how many TCP connections mode userspace keeps at most; default: as many as there are file descriptors for", restart: "the proxy is made once"},
	{path: "sluice.userspace.maxSessions", flag: "userspace-max-sessions", is: int32(0), usage: "how many UDP sessions mode userspace keeps at most; default: as many as there are file descriptors for", restart: "the proxy is made once"},
	{path: "sluice.userspace.udpIdleTimeout", flag: "userspace-udp-idle-timeout", is: time.Duration(0), usage: "after how long without a datagram mode userspace ends a UDP session; default: 30s, and 2m once it was answered", restart: "the proxy is made once"},
	{path: "sluice.userspace.drainTimeout", flag: "userspace-drain-timeout", is: time.Duration(0), usage: "how long mode userspace keeps connections of a Service that is gone; default: until they end", restart: "the proxy is made once"},
	{path: "windowsRunAsService", is: false, usage: ofWindows, vain: ofWindows, quiet: true},
}

// inVain tells of what is written and has no effect in any mode.
func (v *Values) inVain() (told []string) {
	for _, s := range settings {
		at, written := v.where[s.path]
		if s.vain == "" || s.quiet || !written || !v.differs(s) {
			continue
		}
		told = append(told, at.text+": no effect: "+s.vain)
	}
	return told
}
