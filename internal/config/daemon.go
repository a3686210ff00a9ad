package config

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Daemon declares the flags that kube-proxy has beside those of policy, for the verb that takes its place. Those
// without an effect are hidden.
func (f *Flags) Daemon() {
	f.set.SetNormalizeFunc(withDashes)
	f.declareAll(false)
	master := f.set.String("master", "", "the `URL` of the API server, in place of the kubeconfig's")
	f.to["master"] = func(v *Values) error { v.master = *master; return nil }
	f.formerPort("healthz-port", 10256, "healthz-bind-address", func(v *Values) *port { return &v.healthPort })
	f.formerPort("metrics-port", 10249, "metrics-bind-address", func(v *Values) *port { return &v.metricsPort })
	f.gates()
	f.log()
}

// formerPort declares a flag that kube-proxy has deprecated.
func (f *Flags) formerPort(name string, is int32, now string, of func(*Values) *port) {
	number := f.set.Int32(name, is, "the `port` of --"+now+"; 0: none")
	f.set.Lookup(name).Hidden = true
	f.to[name] = func(v *Values) error { *of(v) = port{*number, true, "--" + name}; return nil }
}

func (f *Flags) gates() {
	const name = "feature-gates"
	list := f.set.StringSlice(name, nil, "feature `gates` of kube-proxy, as name=true or name=false, separated by commas")
	f.to[name] = func(v *Values) error {
		gates := maps.Clone(v.as.FeatureGates)
		if gates == nil {
			gates = map[string]bool{}
		}
		for _, s := range *list {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			gate, on, err := parseGate(s)
			if err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
			gates[gate] = on
			v.where["featureGates."+gate] = place{"--" + name, true}
		}
		v.as.FeatureGates = gates
		return nil
	}
}

func parseGate(s string) (name string, on bool, err error) {
	name, value, ok := strings.Cut(s, "=")
	name = strings.TrimSpace(name)
	if on, err = strconv.ParseBool(strings.TrimSpace(value)); !ok || err != nil {
		return name, false, fmt.Errorf("%q: want name=true or name=false", s)
	}
	return name, on, nil
}

// log declares the flags that Kubernetes has types of its own for.
func (f *Flags) log() {
	var level logsapi.VerbosityLevel
	f.set.VarP(logsapi.VerbosityLevelPflag(&level), "v", "v", "the `level` of the log: the higher, the more is told")
	f.to["v"] = func(v *Values) error { v.assign("logging.verbosity", "v", level); return nil }
	var files logsapi.VModuleConfiguration
	f.set.Var(logsapi.VModuleConfigurationPflag(&files), "vmodule", "the level of the log by source file, as `pattern=N`")
	f.set.Lookup("vmodule").Hidden = true
	f.to["vmodule"] = func(v *Values) error { v.assign("logging.vmodule", "vmodule", files); return nil }
	for _, format := range []string{FormatText, FormatJSON} {
		var size resource.QuantityValue
		flag := "log-" + format + "-info-buffer-size"
		f.set.Var(&size, flag, "the `size` of the buffer of the log")
		f.set.Lookup(flag).Hidden = true
		f.to[flag] = func(v *Values) error {
			v.assign("logging.options."+format+".infoBufferSize", flag, size)
			return nil
		}
	}
}
