// Package pick chooses the endpoint of each new connection, for a proxy that makes the connections itself.
//
// A [Picker] holds the endpoints of one list of one Service port. It spreads connections over them (in turn, at random,
// or to the one with the fewest), keeps a client with its endpoint, and passes over endpoints that have just failed.
//
// Pure: the clock and the randomness are handed in. Invariant: it never chooses an endpoint that is not in the list, and
// while one in the list is untried it chooses one, whatever has failed before.
package pick
