package app

import (
	"context"

	"github.com/spf13/pflag"

	"sluice/internal/config"
)

// ChooseMode is the mode that Run works in where none is given: the best that the kernel of the calling thread's network
// namespace can do.
func ChooseMode(ctx context.Context) string {
	mode, _ := choose(ctx)
	return mode
}

// TryMode tells why Run cannot start in a mode there; nil: it can.
func TryMode(ctx context.Context, mode string) error {
	c, _, err := config.NewFlags(pflag.NewFlagSet("", pflag.ContinueOnError)).Load()
	if err != nil {
		return err
	}
	c, _ = c.For(mode)
	return Daemon{Input: Input{Config: c}}.tryMode(ctx)
}
