// Package nftwalk walks the first packet of a new connection through a table of nf_tables, compiled or read from a
// kernel, and tells its verdict, the endpoints with their shares, and the rules and elements that decided.
//
// The walk is symbolic (see package weigh). A state is the packet's destination, mark and priority and what was
// translated. A number from numgen divides a flow into equal shares. A statement that is not known here may match or
// not: half goes each way, and the result is uncertain.
//
// It follows the kernel to the letter where that matters: a lookup that finds nothing ends its rule and the next one
// runs, but what the rule changed before stays changed; what a chain reached by goto lets through goes on where the
// chain that did the goto was called; a translation ends its base chain.
//
// Where the kernel has virtual servers (see [IPVS]) they take packets between the chains of input and of output, and what
// they send on goes by output and postrouting.
//
// It knows nothing of Services: names of Services appear because elements have comments.
//
// Invariant: no share is lost: what goes in is dropped, rejected, or comes out.
package nftwalk
