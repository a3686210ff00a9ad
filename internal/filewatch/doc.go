// Package filewatch tells that the content of a file may have changed, however that came about: written in place,
// another file moved over it, a symbolic link on the way to it turned (as a ConfigMap's are), or a folder above it made.
//
// It watches folders, never files, with a slow poll beside it. Who is told reads the file: a change may be told that was
// none, but none is lost. [Wait] is how who watches more than one file waits.
package filewatch
