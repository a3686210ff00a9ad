package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// use is what Sluice does with a field of KubeProxyConfiguration v1alpha1.
type use uint8

const (
	unknown   use = iota
	acted         // it does what it says, in the mode that it is of
	notActed      // kube-proxy acts on it and Sluice does not
	otherMode     // it speaks to a mode that Sluice has not, or to Windows
)

// fieldUse says it of a field, or of all fields below it.
func fieldUse(path string) use {
	switch path {
	case "apiVersion", "kind", "hostnameOverride", "mode", "clusterCIDR", "nodePortAddresses", "detectLocalMode",
		"detectLocal.bridgeInterface", "detectLocal.interfaceNamePrefix",
		"iptables.masqueradeBit", "iptables.masqueradeAll", "iptables.localhostNodePorts", "iptables.syncPeriod",
		"iptables.minSyncPeriod",
		"nftables.masqueradeBit", "nftables.masqueradeAll", "nftables.syncPeriod", "nftables.minSyncPeriod":
		return acted
	case "bindAddress", "healthzBindAddress", "metricsBindAddress", "bindAddressHardFail", "enableProfiling",
		"showHiddenMetricsForVersion", "featureGates", "clientConnection", "logging", "oomScoreAdj", "conntrack",
		"configSyncPeriod":
		return notActed
	case "ipvs", "winkernel", "windowsRunAsService", "portRange":
		return otherMode
	}
	return unknown
}

// inVain tells of each field that has no effect, in alphabetical order. Fields that are empty say nothing: kubeadm
// writes every field there is.
func inVain(fields map[string]any) (told []string) {
	return inVainBelow("", fields)
}

func inVainBelow(prefix string, fields map[string]any) (told []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path := prefix + name
		below, nested := fields[name].(map[string]any)
		switch use := fieldUse(path); {
		case saysNothing(fields[name]) || use == acted || use == otherMode:
		case use == notActed:
			told = append(told, path+": Sluice does not act on this field")
		case nested && isSection(path):
			told = append(told, inVainBelow(path+".", below)...)
		default:
			told = append(told, fmt.Sprintf("%s: no such field in %s of %s", path, kind, apiVersion))
		}
	}
	return told
}

func isSection(path string) bool {
	return path == "iptables" || path == "nftables" || path == "detectLocal"
}

func saysNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == "" || v == "0s"
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, below := range v {
			if !saysNothing(below) {
				return false
			}
		}
		return true
	}
	return false
}
