// Package config is how an operator tells Sluice to work: kube-proxy's configuration file and kube-proxy's flags, both
// by kube-proxy's names, read into one [Config].
//
//	configuration file → flags → defaults for what is empty ⇒ Values ──Resolve──▶ Config ──▶ app, plan, backend
//
// A flag wins over the file. Values are kube-proxy's own type of it, and every value remembers where it was written, so
// that an error names the flag, or the file, the line and the field. The table of settings has every field and its flag;
// one that Sluice does not act on is told in a warning, never passed over in silence, unless it is of another system.
package config
