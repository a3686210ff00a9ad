package app

import "context"

// takeOver removes what another proxy or another mode left, when the rules of e stand. Until then the old ones serve
// clients, and afterwards open connections go on, which connection tracking keeps.
func (d *daemon) takeOver(ctx context.Context, e *engine) {
	l := leftovers{keeps: e.keeps(), gently: true, routeLocalnet: func(on bool) error {
		if !on && d.board.servesLoopback() {
			return nil // this daemon needs it as well
		}
		return setRouteLocalnet(on)
	}}
	for _, m := range modes() {
		removed, err := m.cleanup(ctx, l)
		for _, what := range removed {
			d.Log.Info("removed what another proxy or mode left", "what", what)
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("packets may also pass rules that another proxy or mode left; sluice cleanup removes them", "error", err)
		}
	}
}
