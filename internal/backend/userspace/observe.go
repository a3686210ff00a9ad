package userspace

// takeOver has listeners closed in time that r knows nothing of: the proxy may have worked for another Ruleset before.
// It reports whether r is new.
func (b *Backend) takeOver(r *Ruleset) bool {
	if b.applied == r {
		return false
	}
	b.applied = r
	for k := range b.deps.Relay.Stats().Targets {
		if _, ok := r.targets[k]; !ok && !k.Direct {
			r.pending[k] = true
		}
	}
	return true
}
