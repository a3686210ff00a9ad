package httpd

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// flagzObject and statuszObject are the objects of config.k8s.io, v1alpha1 and v1beta1 alike.
type flagzObject struct {
	meta
	Flags map[string]string `json:"flags,omitempty"`
}

type statuszObject struct {
	meta
	StartTime        string   `json:"startTime"` // RFC 3339, in UTC and whole seconds
	UptimeSeconds    int64    `json:"uptimeSeconds"`
	GoVersion        string   `json:"goVersion"`
	BinaryVersion    string   `json:"binaryVersion"`
	EmulationVersion string   `json:"emulationVersion,omitempty"`
	Paths            []string `json:"paths"`
}

// flagz lists the flags with their values.
func (o *MuxOptions) flagz() http.Handler {
	return &page{
		component: o.Component, kind: "Flagz",
		object: func(m meta) any { return flagzObject{m, o.Flags()} },
		text: func() string {
			var b strings.Builder
			flags := o.Flags()
			for _, name := range slices.Sorted(maps.Keys(flags)) {
				fmt.Fprintf(&b, "%s=%s\n", name, flags[name])
			}
			return b.String()
		},
	}
}

// statusz tells the age and the versions of the process, and where else to look.
func (o *MuxOptions) statusz(paths []string) http.Handler {
	return &page{
		component: o.Component, kind: "Statusz",
		object: func(m meta) any {
			s := o.Status()
			return statuszObject{
				m, s.Started.UTC().Format(time.RFC3339), uptime(s.Started), s.GoVersion, s.BinaryVersion, s.EmulationVersion, paths,
			}
		},
		text: func() string { return o.Status().text(paths) },
	}
}

func (s Status) text(paths []string) string {
	up := uptime(s.Started)
	emulation := ""
	if s.EmulationVersion != "" {
		emulation = "Emulation version: " + s.EmulationVersion
	}
	return fmt.Sprintf("\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\n%s\nPaths: %s\n",
		s.Started.Format(time.UnixDate), up/3600, up/60%60, up%60,
		s.GoVersion, s.BinaryVersion, emulation, strings.Join(paths, " "))
}

// uptime is in whole seconds, and not below zero when the clock was set back.
func uptime(since time.Time) int64 { return max(0, int64(time.Since(since).Seconds())) }
