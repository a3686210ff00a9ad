// Package examples carries the manifests of this folder inside the program: `sluice demo` serves two of them, wherever
// it runs. README.md says what each shows. Invariant: every file works by itself.
package examples

import "embed"

// Files are the manifests, by file name.
//
//go:embed *.yaml
var Files embed.FS
