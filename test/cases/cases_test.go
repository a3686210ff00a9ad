package cases

import (
	"testing"

	"sluice/internal/testkit/scenario"
)

func TestCases(t *testing.T) {
	columns := scenario.Here(t, scenario.Columns())
	for _, s := range scenario.LoadAll(t, "testdata") {
		t.Run(s.Name, func(t *testing.T) { scenario.Run(t, s, columns) })
	}
}
