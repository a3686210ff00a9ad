package nftables

import (
	"testing"

	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }
