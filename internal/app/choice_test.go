package app

import (
	"errors"
	"strings"
	"testing"

	"sluice/internal/config"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/testkit/nstest"
)

// Every mode can be tried, with no daemon, and what this kernel lacks is named.
func TestTryMode(t *testing.T) {
	nstest.Require(t)
	for _, mode := range []string{config.ModeNFTables, config.ModeIPTables, config.ModeUserspace} {
		if err := TryMode(t.Context(), mode); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	err := TryMode(t.Context(), config.ModeIPVS)
	switch {
	case nstest.HasIPVS(t):
		if err != nil {
			t.Error(err)
		}
	case !errors.Is(err, ipvs.ErrAbsent) || !strings.HasPrefix(err.Error(), "this kernel cannot do mode ipvs: "):
		t.Errorf("got %v, want %v", err, ipvs.ErrAbsent)
	}
}
