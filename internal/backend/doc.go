// Package backend is what the modes have in common: a [Backend] compiles a Plan into its own objects and keeps the
// kernel equal to them. Each mode is a package of its own below this one, with the same files, so who knows one
// knows all. The plan is their only shared language; there is no common form of rules.
package backend
