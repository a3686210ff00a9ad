package conformance

import (
	"testing"

	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/scenario"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func TestConformance(t *testing.T) {
	columns := scenario.Here(t, scenario.Columns())
	for _, s := range scenario.LoadAll(t, "testdata") {
		t.Run(s.Name, func(t *testing.T) { scenario.Run(t, s, columns) })
	}
}
