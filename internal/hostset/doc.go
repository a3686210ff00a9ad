// Package hostset sets the machine up for a proxy, as far as the configuration asks: how many connections the kernel tracks
// and for how long, and how soon it ends this process when memory runs out.
//
//	Settings + Facts ──Plan──▶ Steps ──Host.Apply──▶ kernel
//	                                        └──▶ Problems: what is not as asked, what that means, what to do
//
// Plan is pure. Nothing here is fatal: a machine that cannot be set up serves all the same.
//
// Invariant: what is right already is not written, and limits are only ever raised.
package hostset
