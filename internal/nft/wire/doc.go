// Package wire encodes the values of package nft as the netlink messages that nf_tables takes, and decodes what it sends:
// dumps and notifications. It is pure: bytes are values here, and package nfnl sends and receives them.
//
// What it writes is what the program nft (1.0.6) writes for the text of the same value, user data included, so nft lists
// our tables as it lists its own. Where a comment says "as nft does" there is no other reason.
//
//	nft.Rule ──Batch──▶ bytes ──nfnl──▶ kernel ──nfnl──▶ bytes ──Decode…──▶ Table, Chain, Set, Rule, Element
//
// Numbers of nf_tables are from linux/netfilter/nf_tables.h, and are named as there without their prefix. Lengths and
// types of attributes are in the byte order of the machine, numbers within them in that of the network.
package wire
