// Package house holds the rules of this repository as tests: who may import whom, how long a file or a function may
// be, what every package and every backend must have, and that the commands in the docs work.
//
// It has no code of its own, and nothing imports it. Invariant: each rule says why it is one.
package house
