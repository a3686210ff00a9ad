// Package iptexec runs the iptables programs: it finds them, tells their two variants apart, reads rules with
// iptables-save, writes rules with iptables-restore, and turns what they print into typed errors. The iptables backend
// observes and applies through it; nothing else runs these programs.
//
// Invariant: no program started here outlives this process.
//
// # What iptables-restore costs
//
// Measured with iptables 1.8.9, Linux 6.18, two cores, on kube-proxy's table for N Services with 10 endpoints each
// (11 chains and 43 lines per Service); processor seconds, which elapsed time follows on an idle machine.
//
// First load with --noflush, chains declared first, as kube-proxy does:
//
//	N                       250    500   1000   2500   5000
//	nft                     0.5    2.5   11.1    190      –
//	nft, -S first             –      –    1.2    2.7    8.1  (what Restore does)
//	nft, without --noflush    –    0.6    1.2      –    8.9
//	legacy                  0.1    0.3    0.7      –    5.5
//
// The nft variant is quadratic: with --noflush it notes the chain of every line, and the chain every rule jumps to, in a
// sorted linked list, and searches that list from the start for each line (nft_cache_level_set in nft-cache.c).
// Moving KUBE-SERVICES to the end, --counters, and leaving comments out make no difference. A command that names no
// chain ends the list, because it makes the program read the whole table instead; of those, "-S" changes nothing. So
// [Tools.Restore] puts -S first into long texts, and callers need not care. That is the difference between kube-proxy,
// which did not finish its first sync at 2500 Services in minutes, and a plain restore.
//
// A change when 5000 Services with 10 endpoints are there:
//
//	                                                 nft  legacy
//	nothing but COMMIT                              0.00     1.0
//	one chain of one rule                           0.16     2.0
//	one Service chain, one new, one deleted chain   0.19     2.4
//	KUBE-SERVICES, all 5000 rules                   0.51     2.2
//	one rule by -D and -A, or by -I                 0.21     2.0
//	iptables-save of the nat table                   2.0     1.1
//
// The nft variant asks the kernel for the named chains alone and fetches no rules but for -D, -I and -R; what remains
// is the kernel's check of the table. The legacy variant reads and writes the whole table each time, so
// the number of runs counts and the number of changed chains does not.
//
// # The form to write
//
// First load and change are of the same form, one text per family, one *table each:
//
//   - declare each chain whose rules are new or changed, and no other: ":CHAIN - [0:0]" creates it or empties it;
//     -F costs the same and does not create;
//   - declare each chain to be deleted too, so that it is empty: the nft variant refuses -X of a chain with rules
//     (EBUSY);
//   - then all rules of the chains declared, with -A;
//   - then "-X CHAIN" for each chain to be deleted, after the rules that used to jump to it have gone.
//
// One chain such as KUBE-SERVICES is rewritten whole: it is cheap enough, and exact whatever somebody has done to it.
// Do not run iptables -C, -N or -I per rule on the legacy variant: each reads the whole table (1 s).
// Whether anything has changed since the last look costs the nft variant one message, [Tools.Generation].
package iptexec
