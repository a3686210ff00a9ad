package app

import "context"

// takeOver removes what another proxy or another mode left, once the rules of this one stand. Until then the old ones
// serve clients, and afterwards open connections go on, which connection tracking keeps.
func (d *daemon) takeOver(ctx context.Context, stands <-chan struct{}) {
	select {
	case <-stands:
	case <-ctx.Done():
		return
	}
	l := leftovers{routeLocalnet: setRouteLocalnet}
	if d.Config.Plan.LocalhostNodePorts {
		l.routeLocalnet = nil // this daemon needs it as well
	}
	for _, m := range modes() {
		if m.name() == d.mode.name() {
			m = d.mode
		}
		removed, err := m.cleanup(ctx, l)
		for _, what := range removed {
			d.log.Info("removed what another proxy or mode left", "what", what)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("packets may also pass rules that another proxy or mode left; sluice cleanup removes them", "error", err)
		}
	}
}
