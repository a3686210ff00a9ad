package app

import (
	"context"
	"fmt"
	"log/slog"
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
	retireAll(ctx, b.Retire, d.Log.Logger)
}

// retireAll calls retire until nothing is left. It tells what went wrong once, until it is something else.
func retireAll(ctx context.Context, retire func(context.Context) (left int, err error), log *slog.Logger) {
	failed := ""
	for most := 0; ; {
		left, err := retire(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != failed:
			failed = err.Error()
			log.Warn("virtual servers of mode ipvs are left; sluice cleanup removes them", "error", err)
		case err != nil:
		case left == 0 && most == 0:
			return
		case left == 0:
			log.Info("removed what another proxy or mode left", "what", fmt.Sprintf("%d virtual servers, as their connections ended", most))
			return
		}
		most = max(most, left)
		select {
		case <-time.After(retirePause):
		case <-ctx.Done():
			return
		}
	}
}
