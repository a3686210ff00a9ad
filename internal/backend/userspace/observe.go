package userspace

// takeOver has listeners closed in time that r knows nothing of: the proxy may have worked for another Ruleset before.
func (b *Backend) takeOver(r *Ruleset) {
	if b.applied == r {
		return
	}
	b.applied = r
	for k := range b.deps.Relay.Stats().Targets {
		if _, ok := r.targets[k]; !ok && !k.Direct {
			r.pending[k] = true
		}
	}
}
