// Package gen draws random Services, endpoints, nodes, policies and packets for property tests, so that every backend
// is tried with the same ones. All come from rapid, which prints the seed of a failure and shrinks it.
//
// The world is small, so that things clash: one node, [Node], with a neighbour; a handful of addresses, ports and
// names, and weights that differ little. Packets are aimed at what a Plan has, by clients of every kind. Only packets that can exist are drawn: one
// with an address of the node as its source is sent by the node.
package gen
