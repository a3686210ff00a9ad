// Package nft is the language of nf_tables as values: tables, chains, rules, sets and elements, as much of it as Sluice
// writes. The same value is printed as text that nft -f reads, encoded as the attributes that the kernel reads, and
// walked by package nftwalk to tell what becomes of a packet; so the three cannot differ.
//
//	compile ──Table──▶ text · attributes (package wire) ──▶ kernel
//	                     └──▶ walk (package nftwalk)
//
// It is pure, and knows nothing of Services.
package nft
