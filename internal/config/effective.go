package config

import (
	"bytes"
	"fmt"

	componentbase "k8s.io/component-base/config/v1alpha1"
	"k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// KubeProxy is the effective configuration as kube-proxy's API has it, defaults included, and Sluice's own section if it says
// anything. What takes a start, and what a
// mode that cannot start would be needed for, is as c has it, whatever the file says since.
func (c Config) KubeProxy() *File {
	is := &File{*c.values.as.DeepCopy(), c.values.as.Sluice}
	if c.Mode != ModePlan {
		is.Mode = v1alpha1.ProxyMode(c.Mode)
	}
	is.HostnameOverride = c.Plan.NodeName
	is.ClientConnection = componentbase.ClientConnectionConfiguration{
		Kubeconfig: c.Client.Kubeconfig, ContentType: c.Client.ContentType, AcceptContentTypes: c.Client.AcceptContentTypes,
		QPS: c.Client.QPS, Burst: int32(c.Client.Burst),
	}
	is.Logging.Format = c.Log.Format
	is.Conntrack.TCPBeLiberal = c.Host.Conntrack.BeLiberal
	bit := int32(c.MasqueradeBit)
	if c.values.policyOf(c.Mode) == ModeNFTables {
		is.NFTables.MasqueradeBit = &bit
	} else {
		is.IPTables.MasqueradeBit = &bit
	}
	return is
}

// YAML is a configuration file that reads as this Config, but for Client.Master, which no file says.
func (c Config) YAML() ([]byte, error) {
	var b bytes.Buffer
	if c.Client.Master != "" {
		fmt.Fprintf(&b, "# No field says --master=%q.\n", c.Client.Master)
	}
	text, err := yaml.Marshal(c.KubeProxy())
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	b.Write(text)
	return b.Bytes(), nil
}
