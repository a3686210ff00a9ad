package config

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// gateList has a line for each feature gate of kube-proxy 1.37.2: its name, its stage, its default, and whether it is
// locked to that.
//
//go:embed gates.txt
var gateList string

type gate struct {
	stage  string
	on     bool
	locked bool
}

var knownGates = sync.OnceValue(func() map[string]gate {
	all := map[string]gate{}
	for line := range strings.Lines(gateList) {
		words := strings.Fields(line)
		all[words[0]] = gate{stage: words[1], on: words[2] == "true", locked: len(words) > 3}
	}
	return all
})

// The gates that Sluice acts on, and those that stand for all of a stage.
const (
	gateExternalIPs = "AllowServiceExternalIPs"
	gateJSONLog     = "LoggingBetaOptions"
	gateIPVS        = "KubeProxyIPVS"
	gateLocalhost   = "KubeProxyNFTablesLocalhostNodePorts"
	gateAllAlpha    = "AllAlpha"
	gateAllBeta     = "AllBeta"
)

// heeded are the gates that Sluice acts on.
var heeded = []string{gateExternalIPs, gateJSONLog, gateIPVS, gateLocalhost}

// FeatureStage is how far a gate of [Config.Features] has come: ALPHA, BETA, GA or DEPRECATED.
func FeatureStage(name string) string { return knownGates()[name].stage }

// features are all gates with what they are set to. AllAlpha and AllBeta set those of a stage that nothing else sets.
func (v *Values) features() (map[string]bool, error) {
	all := make(map[string]bool, len(knownGates()))
	for name, g := range knownGates() {
		all[name] = g.on
		for stage, of := range map[string]string{"ALPHA": gateAllAlpha, "BETA": gateAllBeta} {
			if on, given := v.as.FeatureGates[of]; given && g.stage == stage && !special(name) {
				all[name] = on
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(v.as.FeatureGates)) {
		errs = append(errs, v.checkGate(name))
		if _, known := all[name]; known {
			all[name] = v.as.FeatureGates[name]
		}
	}
	return all, errors.Join(errs...)
}

func special(name string) bool { return name == gateAllAlpha || name == gateAllBeta }

func (v *Values) checkGate(name string) error {
	g, known := knownGates()[name]
	switch {
	case !known:
		return v.wrong("featureGates."+name, name, "kube-proxy 1.37 has no such feature gate")
	case g.locked && g.on != v.as.FeatureGates[name]:
		return v.wrong("featureGates."+name, !g.on, "the feature is locked to %s", strconv.FormatBool(g.on))
	}
	return nil
}

// gatesInVain says why, of gates that are kube-proxy's own. The others are of other parts of Kubernetes.
var gatesInVain = map[string]string{
	"NFTablesNetlink": "Sluice speaks to nf_tables over netlink in any case",
}

// inVainOfGates tells of gates that are set to what they are not by default, and change nothing.
func (v *Values) inVainOfGates() (told []string) {
	for _, name := range slices.Sorted(maps.Keys(v.as.FeatureGates)) {
		g, known := knownGates()[name]
		if !known || g.on == v.as.FeatureGates[name] || slices.Contains(heeded, name) || special(name) {
			continue
		}
		why, ok := gatesInVain[name]
		if !ok {
			why = "nothing in Sluice depends on it"
		}
		told = append(told, fmt.Sprintf("%s: %s=%t has no effect: %s", v.at("featureGates."+name), name, !g.on, why))
	}
	return told
}
