// Package config is how an operator tells Sluice to work: kube-proxy's configuration file and kube-proxy's flags, both
// by kube-proxy's names, read into one [Config].
//
//	Default → configuration file → flags ⇒ Resolve ──Config──▶ plan, backend, reconcile
//
// What is written further right wins. Every value remembers where it was written, so that an error names the flag, or
// the file and the field. A field that Sluice does not act on is told in a warning, never passed over in silence.
package config
