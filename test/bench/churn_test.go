package bench

import (
	"fmt"
	"testing"

	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
	"sluice/test/churn"
)

// BenchmarkChurn makes 200 changes a second for half a minute, while clients connect to Services that do not change.
func BenchmarkChurn(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		c := churn.Config{Services: 5000, Stable: 100, PerSecond: 200, Changes: 6000, Seed: 1}
		r := churn.Run(b, c)
		for _, failed := range r.Failed {
			b.Error(failed)
		}
		t := figures.Grid{Head: []string{
			fmt.Sprintf("%d changes a second, %d Services", c.PerSecond, c.Services),
			"changes", "writes", "CPU ms for each change", "connections", "failed", "first packets repeated",
		}}
		t.Add(fmt.Sprintf("%d Services that stay", c.Stable), fmt.Sprint(c.Changes), fmt.Sprint(r.Writes),
			fmt.Sprintf("%.3f", r.CPU.Seconds()*1e3/float64(c.Changes)), fmt.Sprint(r.Connections), fmt.Sprint(len(r.Failed)), fmt.Sprint(r.Repeated))
		publish(b, "churn", t.String())
	}
}
