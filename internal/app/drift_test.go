package app

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/config"
	"sluice/internal/kernel/iptexec"
)

// TestRepairsWithoutPolling: where the kernel tells what others do, no sync period passes before it is repaired. The
// time that it takes is reported.
func TestRepairsWithoutPolling(t *testing.T) {
	n := newNode(t)
	n.use(iptexec.NFT) // the legacy variant does not tell what others do
	n.in.Config = flags(t, "--mode="+config.ModeIPTables, "--node=node-a", "--iptables-sync-period=1h")
	n.put(udp("dns", "10.96.0.10", 53, 0, "10.244.2.5:53"))
	n.start()
	n.eventually("rules are written", n.has("--to-destination 10.244.2.5:53"))
	for _, text := range []string{
		"*nat\n-F KUBE-SERVICES\nCOMMIT\n",
		"*filter\n-F FORWARD\n:KUBE-FORWARD - [0:0]\n-X KUBE-FORWARD\nCOMMIT\n",
	} {
		told := strings.Count(n.said(), "it is restored")
		n.restore(text)
		start := time.Now()
		n.eventually("it is told", func() bool { return strings.Count(n.said(), "it is restored") > told })
		t.Logf("told after %v, in steps of 20 ms", time.Since(start))
		n.eventually("it is repaired", n.asPlanned)
	}
}
