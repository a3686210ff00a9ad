package dropin_test

import (
	"os"
	"testing"

	"sluice/test/cluster"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(containerEnv); spec != "" {
		enter(spec)
	}
	cluster.Main(m)
}
