package app

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/internal/kernel/instance"
	"sluice/internal/reconcile"
	"sluice/internal/status"
)

// StatusOptions are what to show of a daemon, and how.
type StatusOptions struct {
	Namespace string // empty: every one
	Service   string // NAME or NAMESPACE/NAME; empty: all
	Format    Format
}

// Status shows what the daemon of this network namespace does. A Service port in state error, and a daemon that waits for
// its first objects or whose changes do not reach the kernel, are BadNews.
func Status(o StatusOptions, out io.Writer) (Outcome, error) {
	r, err := askDaemon()
	if err != nil {
		return Good, err
	}
	if r.Ports, err = o.choose(r.Ports); err != nil {
		return Good, err
	}
	outcome := Good
	if !r.Healthy || r.Unread() || slices.ContainsFunc(r.Ports, failed) {
		outcome = BadNews
	}
	v := statusView{Report: r, now: time.Now(), wide: o.Format == Wide, namespace: o.Namespace}
	if v.wide {
		o.Format = Text
	}
	return outcome, show(out, o.Format, v)
}

// StatusNames are the namespaces, and the Services in one of them or all (""), that the daemon has, for completion on the
// command line. Where it cannot be asked there are none.
func StatusNames(namespace string) (namespaces, services []string) {
	r, err := askDaemon()
	if err != nil {
		return nil, nil
	}
	spaces, names := map[string]bool{}, map[string]bool{}
	for _, p := range r.Ports {
		spaces[p.Namespace] = true
		if namespace == "" || p.Namespace == namespace {
			names[p.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(spaces)), slices.Sorted(maps.Keys(names))
}

func askDaemon() (status.Report, error) {
	conn, err := instance.Dial()
	if err != nil {
		return status.Report{}, err
	}
	return status.Ask(conn)
}

// choose keeps the ports that are asked for. That there is none of a Service that is named is an error.
func (o StatusOptions) choose(ports []status.Port) ([]status.Port, error) {
	namespace, name := o.Namespace, o.Service
	if before, after, ok := strings.Cut(o.Service, "/"); ok {
		namespace, name = before, after
	}
	chosen := slices.DeleteFunc(slices.Clone(ports), func(p status.Port) bool {
		return namespace != "" && p.Namespace != namespace || name != "" && p.Name != name
	})
	if name == "" || len(chosen) > 0 {
		return chosen, nil
	}
	if namespace == "" {
		return nil, fmt.Errorf("no Service %s is served in any namespace", name)
	}
	return nil, fmt.Errorf("no Service %s is served in namespace %s", name, namespace)
}

func failed(p status.Port) bool { return p.State == string(reconcile.Failed) }
