package app

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/backend/ipvs"
)

// retirePause is the time between two looks whether virtual servers that another mode took over from have connections.
const retirePause = 5 * time.Second

// retire has the virtual servers of mode ipvs go when e has taken over from it, as their connections end. What is left
// when this process ends is for the next one.
func (d *daemon) retire(ctx context.Context, e *engine) {
	if e.keeps().servers {
		return
	}
	b := ipvs.New(ipvsOptions(d.config()), ipvs.Deps{})
	defer func() {
		if err := b.Close(); err != nil {
			d.Log.Warn("the socket to virtual servers is not closed", "error", err)
		}
	}()
	for told := 0; ; {
		left, err := b.Retire(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.Log.Warn("virtual servers of mode ipvs are left; sluice cleanup removes them", "error", err)
		case left == 0 && told == 0:
			return
		case left == 0:
			d.Log.Info("removed what another proxy or mode left", "what", fmt.Sprintf("%d virtual servers, as their connections ended", told))
			return
		}
		told = max(told, left)
		select {
		case <-time.After(retirePause):
		case <-ctx.Done():
			return
		}
	}
}
