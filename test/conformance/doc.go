// Package conformance asks every mode the same questions. Each scenario in testdata is a feature, its title is the name
// of a row in README's table of what works in which mode: a cell says yes if the mode answers and nothing excuses it.
//
// Invariant: a mode answers every scenario, or the scenario says why it cannot.
package conformance
