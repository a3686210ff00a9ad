package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	apiVersion = "kubeproxy.config.k8s.io/v1alpha1"
	kind       = "KubeProxyConfiguration"
)

// file is what Sluice acts on in a KubeProxyConfiguration. It is a struct of our own because the package of
// kube-proxy's brings a metrics and a tracing library with it.
type file struct {
	APIVersion        string   `json:"apiVersion"`
	Kind              string   `json:"kind"`
	HostnameOverride  string   `json:"hostnameOverride"`
	Mode              string   `json:"mode"`
	ClusterCIDR       string   `json:"clusterCIDR"`
	NodePortAddresses []string `json:"nodePortAddresses"`
	DetectLocalMode   string   `json:"detectLocalMode"`
	DetectLocal       struct {
		BridgeInterface     string `json:"bridgeInterface"`
		InterfaceNamePrefix string `json:"interfaceNamePrefix"`
	} `json:"detectLocal"`
	IPTables struct {
		fileSection
		LocalhostNodePorts *bool `json:"localhostNodePorts"`
	} `json:"iptables"`
	NFTables fileSection `json:"nftables"`
}

// fileSection is what the sections of the modes have in common.
type fileSection struct {
	MasqueradeBit *int   `json:"masqueradeBit"`
	MasqueradeAll bool   `json:"masqueradeAll"`
	SyncPeriod    period `json:"syncPeriod"`
	MinSyncPeriod period `json:"minSyncPeriod"`
}

// period is a time.Duration that is written like "30s".
type period time.Duration

// UnmarshalJSON reads a string, as kube-proxy does.
func (p *period) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf(`duration %s: want a string such as "30s"`, b)
	}
	d, err := time.ParseDuration(s)
	*p = period(d)
	return err
}

// read lays the file at path over v. The warnings name what the file says in vain.
func (v *Values) read(path string) (warnings []string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	warnings, err = v.parse(path, content)
	if err != nil {
		err = fmt.Errorf("configuration file %s: %w", path, err)
	}
	return warnings, err
}

func (v *Values) parse(path string, content []byte) (warnings []string, err error) {
	// A field given twice is a mistake, but kube-proxy starts with it; so it is told, and the last one counts.
	if _, err := yaml.YAMLToJSONStrict(content); err != nil {
		warnings = append(warnings, fmt.Sprintf("%s: %v", path, err))
	}
	text, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, err
	}
	var f file
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &f); err != nil {
		return nil, err
	}
	if f.APIVersion != apiVersion || f.Kind != kind {
		return nil, fmt.Errorf("it is a %q of apiVersion %q, want a %s of %s", f.Kind, f.APIVersion, kind, apiVersion)
	}
	var all map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &all); err != nil {
		return nil, errors.New("it is no mapping of fields")
	}
	for _, w := range inVain(all) {
		warnings = append(warnings, path+": "+w)
	}
	v.overlay(path, &f)
	return warnings, nil
}

// overlay takes from f what it says. An empty string and a period of zero say nothing, as in kube-proxy.
func (v *Values) overlay(path string, f *file) {
	set(&v.hostname, f.HostnameOverride, path, "hostnameOverride")
	set(&v.mode, f.Mode, path, "mode")
	set(&v.clusterCIDR, f.ClusterCIDR, path, "clusterCIDR")
	set(&v.detectLocalMode, f.DetectLocalMode, path, "detectLocalMode")
	set(&v.bridgeInterface, f.DetectLocal.BridgeInterface, path, "detectLocal.bridgeInterface")
	set(&v.interfaceNamePrefix, f.DetectLocal.InterfaceNamePrefix, path, "detectLocal.interfaceNamePrefix")
	v.fileMode = v.mode.is
	v.iptables.overlay(path, "iptables", &f.IPTables.fileSection)
	v.nftables.overlay(path, "nftables", &f.NFTables)
	if len(f.NodePortAddresses) > 0 {
		v.nodePortAddresses = value[[]string]{f.NodePortAddresses, path + ": nodePortAddresses"}
	}
	if b := f.IPTables.LocalhostNodePorts; b != nil {
		v.localhostNodePorts = value[bool]{*b, path + ": iptables.localhostNodePorts"}
	}
}

func (s *section) overlay(path, name string, f *fileSection) {
	set(&s.masqueradeAll, f.MasqueradeAll, path, name+".masqueradeAll")
	set(&s.syncPeriod, time.Duration(f.SyncPeriod), path, name+".syncPeriod")
	set(&s.minSyncPeriod, time.Duration(f.MinSyncPeriod), path, name+".minSyncPeriod")
	if n := f.MasqueradeBit; n != nil {
		s.masqueradeBit = value[int]{*n, path + ": " + name + ".masqueradeBit"}
	}
}

func set[T comparable](v *value[T], is T, path, field string) {
	var nothing T
	if is != nothing {
		*v = value[T]{is, path + ": " + field}
	}
}
