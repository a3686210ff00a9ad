package bench_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit/figures"
	"sluice/test/cluster"
)

var (
	services  = flag.Int("services", 5000, "how many Services")
	endpoints = flag.Int("endpoints", 10, "how many endpoints each has")
	rounds    = flag.Int("rounds", 5, "how many turns each has")
	churn     = flag.Duration("churn", 30*time.Second, "how long Services change constantly")
	iptables  = flag.Bool("iptables", false, "the iptables modes too, which takes longer")
	update    = flag.Bool("update", false, "write the result into docs/benchmarks.md")
)

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(asLister); kubeconfig != "" {
		if err := beLister(kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	cluster.Main(m)
}

// smallest is the least minSyncPeriod that kube-proxy takes: it reads 0 as its default.
const smallest = "minSyncPeriod: 1ns"

// subjects are who is measured.
func subjects() []*subject {
	all := []*subject{
		{name: "Sluice", node: "node-a", mode: "nftables", start: (*cluster.Cluster).StartSluice, samples: 12},
		{name: "kube-proxy", node: "node-b", mode: "nftables", start: (*cluster.Cluster).StartKubeProxy, samples: 4, interval: time.Second},
		{name: "kube-proxy, smallest minSyncPeriod", node: "node-c", mode: "nftables", config: "nftables: {" + smallest + "}", start: (*cluster.Cluster).StartKubeProxy, samples: 4},
	}
	if *iptables {
		all = append(
			all,
			&subject{name: "Sluice, mode iptables", node: "node-d", mode: "iptables", start: (*cluster.Cluster).StartSluice, samples: 4},
			&subject{name: "kube-proxy, mode iptables", node: "node-e", mode: "iptables", start: (*cluster.Cluster).StartKubeProxy, samples: 4, interval: time.Second},
			&subject{name: "kube-proxy, mode iptables, smallest minSyncPeriod", node: "node-f", mode: "iptables", config: "iptables: {" + smallest + "}", start: (*cluster.Cluster).StartKubeProxy, samples: 4},
		)
	}
	return all
}

// BenchmarkCluster prints tables instead of figures of its own.
func BenchmarkCluster(b *testing.B) {
	for b.Loop() {
		others := loadAverage(b)
		a := newArena(b, subjects())
		tables := []*figures.Grid{a.starts(), a.changes(), a.churns()}
		for i, name := range []string{"cluster-start", "cluster-change", "cluster-churn"} {
			text := tables[i].String()
			if i == 0 {
				text = fmt.Sprintf("%d Services with %d endpoints each; %s. Load average before: %s.\n\n%s", *services, *endpoints, figures.Machine(b), others, text)
			}
			figures.Publish(b, filepath.Join("..", "..", "..", "docs", "benchmarks.md"), name, text, *update)
		}
	}
}

// loadAverage is that of the last minute: it tells whether the machine has anything else to do.
func loadAverage(b *testing.B) string {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	lastMinute, _, _ := strings.Cut(string(text), " ")
	return lastMinute
}
