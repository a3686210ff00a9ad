package differential_test

import (
	"testing"

	"sluice/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }
