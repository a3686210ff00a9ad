// Package count counts what is relayed: for each Target, and in all.
//
// A [Counter] is added to from many goroutines, by atomic additions alone. One that has a parent adds to it too, so
// that sums over all Targets go on when a Target goes. An [Occasion] keeps what happens often from filling the log.
package count
