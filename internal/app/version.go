package app

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"

	"sluice/internal/config"
	"sluice/internal/metrics"
)

// version is what this program was built from.
type version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Time    string `json:"commitTime,omitempty"`
	// Modified is set where the build had changes that are not in the commit.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// PrintVersion prints what this program was built from.
func PrintVersion(w io.Writer, f Format) error { return show(w, f, readVersion()) }

func readVersion() version {
	v := version{Version: "unknown", Go: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version, v.Go = cmp.Or(info.Main.Version, v.Version), info.GoVersion
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	v.Commit, v.Time, v.Modified = settings["vcs.revision"], settings["vcs.time"], settings["vcs.modified"] == "true"
	v.Platform = settings["GOOS"] + "/" + settings["GOARCH"]
	return v
}

func (v version) text(w io.Writer) error {
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit
	}
	if v.Modified {
		commit += " with changes"
	}
	_, err := fmt.Fprintf(w, "sluice %s%s, %s, %s\n", v.Version, commit, v.Go, v.Platform)
	return err
}

// metricsInfo is what the metrics tell of this program.
func metricsInfo(c config.Config) metrics.Info {
	v := readVersion()
	return metrics.Info{Version: v.Version, Commit: v.Commit, Go: v.Go, Platform: v.Platform, Features: c.Features, Stage: config.FeatureStage}
}
