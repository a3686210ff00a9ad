package metrics

import (
	"regexp"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Info is what the metrics tell of this program.
type Info struct {
	Version, Commit, Go, Platform string
	// Features are the feature gates, and whether each is on.
	Features map[string]bool
	// Stage tells how far a gate has come: ALPHA, BETA, GA, DEPRECATED. It may be nil if there are no Features.
	Stage func(gate string) string
}

var majorMinor = regexp.MustCompile(`^v(\d+)\.(\d+)\.`)

// build is a gauge of 1, with what this program was built from as labels. What is not known is empty.
func (i Info) build() prometheus.Collector {
	g := newGaugeVec("kubernetes_build_info", "What this program was built from; always 1.",
		"major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform")
	var major, minor string
	if m := majorMinor.FindStringSubmatch(i.Version); m != nil {
		major, minor = m[1], m[2]
	}
	g.WithLabelValues(major, minor, i.Version, i.Commit, "", "", i.Go, runtime.Compiler, i.Platform).Set(1)
	return g
}

// features has a gauge for each gate. The stage of those that are generally available is empty, as in Kubernetes.
func (i Info) features() prometheus.Collector {
	g := newGaugeVec("kubernetes_feature_enabled", "1 for a feature gate that is on, 0 for one that is off.", "name", "stage")
	for name, on := range i.Features {
		stage := i.Stage(name)
		if stage == "GA" {
			stage = ""
		}
		g.WithLabelValues(name, stage).Set(one(on))
	}
	return g
}
