package dropin_test

import (
	"strings"
	"testing"

	"sluice/test/cluster"
)

// start is a cluster with a Service of three pods.
func start(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	c := cluster.Start(t, o)
	c.Web(t, 3)
	return c
}

// alarms are the lines of a log that ask for somebody's attention, but for those about the machine, which in a namespace
// is not the proxy's to set.
func alarms(log string) (lines []string) {
	for line := range strings.Lines(log) {
		alarming := strings.HasPrefix(line, "warning:") || strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
		if alarming && !strings.Contains(line, `msg="the machine is not set up as asked"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// runsAs waits until a proxy is in sync and says that its mode is this.
func runsAs(t *testing.T, p *cluster.Proxy, mode string) {
	t.Helper()
	p.WaitSynced(t)
	if status, body, err := p.Get("10249", "/proxyMode"); err != nil || body != mode {
		t.Errorf("/proxyMode: %d %q, %v; want %s", status, body, err, mode)
	}
}
