package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// errNotYet is what WaitFor hears while there is nothing more to say.
var errNotYet = errors.New("not yet")

// Metrics are figures by their series, as Prometheus' text format writes them: name{label="value"}.
type Metrics map[string]float64

func parseMetrics(text string) (Metrics, error) {
	m := Metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("the line %q is no figure", line)
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("the line %q is no figure: %w", line, err)
		}
		m[line[:at]] = value
	}
	return m, nil
}

// Sum adds up all series of a name whose labels contain all of labels, each written name="value".
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, v := range m.series(name, labels) {
		sum += v
	}
	return sum
}

// Has reports whether there is a series of the name.
func (m Metrics) Has(name string) bool { return len(m.series(name, nil)) > 0 }

func (m Metrics) series(name string, labels []string) (found []float64) {
next:
	for s, v := range m {
		own, rest, _ := strings.Cut(s, "{")
		if own != name {
			continue
		}
		for _, l := range labels {
			if !strings.Contains("{"+rest, "{"+l) && !strings.Contains(rest, ","+l) {
				continue next
			}
		}
		found = append(found, v)
	}
	return found
}

// synced says why kube-proxy's figures do not tell of a proxy in sync.
func (m Metrics) synced() error {
	const last, queued = "kubeproxy_sync_proxy_rules_last_timestamp_seconds", "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"
	done := m.series(last, nil)
	if len(done) == 0 {
		return fmt.Errorf("there is no %s", last)
	}
	if slices.Contains(done, 0) {
		return fmt.Errorf("one of %s is 0", last)
	}
	for _, name := range []string{"kubeproxy_sync_proxy_rules_service_changes_pending", "kubeproxy_sync_proxy_rules_endpoint_changes_pending"} {
		if n := m.Sum(name); n != 0 {
			return fmt.Errorf("%s is %g", name, n)
		}
	}
	if m.Sum(queued) == 0 {
		return fmt.Errorf("%s is 0", queued)
	}
	return nil
}
