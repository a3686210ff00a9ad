// Package daemon runs sluice itself, as a process of its own, on the machines of a lab: the test program is sluice when
// it is started for that, so that nothing has to be built first. A test package hands its TestMain to [Main].
//
// Invariant: no daemon outlives its test, or the test program.
package daemon
