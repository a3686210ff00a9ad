// Package figures prints what benchmarks find as tables, and puts them into a document: between the marks
//
//	<!-- NAME: begin, written by HOW -->
//	<!-- NAME: end -->
//
// Invariant: what is outside the marks stays as it is.
package figures
