// Package status lets a process ask the running daemon what it does.
//
//	Ask ──"status"──▶ Serve ──Report, as JSON──▶ Ask
//
// Whoever asks sends one line and gets one answer. A process that is to take the daemon's place asks at the same door. Invariant: nothing that the other side does or fails to do holds up
// the daemon. Every connection has a deadline, there are few at once, and all end with the listener.
package status
