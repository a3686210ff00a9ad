// Package connect opens TCP connections as package net does, and hears of every refusal at once.
//
// A refusal by ICMP that comes while connect(2) still sends the first packet, as a filter on this machine answers it, does
// not end the attempt: the kernel notes it, and is silent until it tries again after a second. Whoever asks is told of the
// note.
package connect
