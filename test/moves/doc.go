// Package moves shows that a node can change its mode while clients use Services: from each mode to each other one, in one
// daemon whose configuration changes, and from one daemon to the next that takes its place. No new connection is refused,
// and none that is open is lost.
package moves
