// Package rules holds an iptables ruleset as text with structure: tables, chains and rules in their order, where a rule
// stays the text that iptables-save prints after "-A CHAIN".
//
// The compiler writes a [Ruleset], observe reads one with [Parse] from iptables-save, and the difference between the two
// is what gets applied. A rule is parsed into matches and a target only by those who need it ([Rule.Parse]: the walker
// and the comparison), so a table of 100,000 rules costs little more than its text.
//
// Invariant: [Equal] is true only for rules that the kernel treats alike, in whatever spelling one of the iptables
// versions since 1.8.4, nft or legacy, prints them. What it does not know it compares as text.
package rules
