package app

import (
	"context"
	"os"
	"runtime/debug"
)

// How much garbage there may be beside what is in use, in percent, until it is collected. Go's own 100 doubles the memory
// of a daemon that runs beside everything else on the node. At the start most of what is made is garbage, and to look
// for it more often costs more than it saves.
const (
	garbageAtStart = 50
	garbage        = 10
)

// thrift keeps the daemon small, unless the environment says how much garbage there may be. Once the rules stand it gives
// back what the start took.
func thrift(ctx context.Context, stands <-chan struct{}) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(garbageAtStart)
	select {
	case <-stands:
		debug.SetGCPercent(garbage)
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}
