package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/crowd"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

func nftablesFlags() []string { return []string{"--mode=nftables"} }

// manySamples is how often a change of a file is measured.
const manySamples = 7

// BenchmarkDaemon measures the whole program in mode nftables, with a folder of manifests.
func BenchmarkDaemon(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		c := crowd.Crowd{Services: 10_000, Endpoints: *endpoints}
		t := figures.Grid{Head: []string{fmt.Sprintf("%d × %d", c.Services, c.Endpoints), "CPU ms", "elapsed ms", "MiB, at its peak", "MiB, afterwards"}}
		daemonRows(b, &t, c.Services)
		status := alone(b, c)
		t.Add("planner and backend alone, without manifests", "", "", mebibytes(memory(b, status, "VmHWM")), mebibytes(memory(b, status, "VmRSS")))
		publish(b, "daemon", t.String())
	}
}

func mebibytes(n int) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }

func daemonRows(b *testing.B, t *figures.Grid, services int) {
	b.Helper()
	f, node := newFolder(b, services), newNode(b)
	d := &watched{B: b, folder: f, node: node, flags: nftablesFlags()}
	add := func(what string, costs ...cost) {
		d.rest()
		c, status := median(costs), d.proc("status")
		t.Add(what, milliseconds(c.cpu), milliseconds(c.wall), mebibytes(memory(b, status, "VmHWM")), mebibytes(memory(b, status, "VmRSS")))
	}
	add("from its start until all is written", d.start())
	var other, more, less []cost
	odd, next := func(version int) string { return service(services, *endpoints, version) }, service(services+1, *endpoints, 0)
	for i := range manySamples {
		other = append(other, d.until(func() { f.put(b, odd(1+i)) }))
		more = append(more, d.until(func() { f.put(b, odd(1+i), next) }))
		less = append(less, d.until(func() { f.put(b, odd(1+i)) }))
	}
	add("a file with one other endpoint", other...)
	add("a file with one more Service", more...)
	add("a file with one Service less", less...)
	d.Stop()
	add("from its start with nothing changed", d.start())
	d.Stop()
}

// asAlone in the environment makes the test program be planner and backend alone, with so many Services and endpoints.
const asAlone = "SLUICE_BENCH_ALONE"

// alone has planner and backend write a crowd in a process of their own, and returns its /proc/self/status.
func alone(b *testing.B, c crowd.Crowd) string {
	b.Helper()
	cmd := newNode(b).Command(b.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", asAlone, c.Services, c.Endpoints))
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("planner and backend alone: %v\n%s", err, out)
	}
	return string(out)
}

// beAlone is that process.
func beAlone(what string) error {
	var c crowd.Crowd
	if _, err := fmt.Sscan(what, &c.Services, &c.Endpoints); err != nil {
		return err
	}
	planner := plan.NewPlanner(policyNFTables())
	planner.Update(model.Delta(*c.Snapshot()))
	be := nftables.New(nftables.DefaultOptions(), nftables.Deps{})
	ruleset := be.Compile(planner.Plan())
	for i := range repeats {
		if _, err := be.Apply(context.Background(), ruleset, backend.Request{}); err != nil {
			return err
		}
		ruleset.Update(planner.Plan(), planner.Update(c.Change(i, 1)))
	}
	status, err := os.ReadFile("/proc/self/status")
	fmt.Print(strings.TrimSpace(string(status)))
	return err
}
