// Package iptables is the iptables mode: it compiles a Plan into the chains that kube-proxy makes, under the same
// names and in the same order, and keeps the kernel's tables equal to them. See README.md for the way of a packet.
//
//	plan ──▶ Compile ──▶ Ruleset ──▶ diff ──▶ delta ──▶ iptables-restore
//	                                  ▲ iptables-save, or the shadow of what was written
//
// Everything up to the delta is pure. Rules are text, as iptables-save prints them, so that what was written and what
// is read back are the same string, and a chain is compared by comparing strings.
//
// Invariant: chains and rules that are not ours are never changed or moved. Ours are those of [own] and the jumps to
// them; kubelet's KUBE-FIREWALL is shared and only ever added to.
package iptables
