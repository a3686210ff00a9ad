package app

import (
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

// thriftAtStart bounds the garbage of a start.
func thriftAtStart() { bound(garbageAtStart) }

// thrift keeps the daemon small from now on, and gives back what the start took.
func thrift() {
	if bound(garbage) {
		debug.FreeOSMemory()
	}
}

// bound sets how much garbage there may be, unless the environment says it.
func bound(percent int) bool {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	debug.SetGCPercent(percent)
	return true
}
