// Package cli is the command line: one file for each verb, which declares its flags and calls package app. It holds no
// logic; what a verb does is in app.
//
// Exit status: 0 done; 1 the answer is bad news, or the work failed; 2 wrong usage or unreadable input. An error is
// printed once, by [Main].
package cli
