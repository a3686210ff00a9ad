package backend

import (
	"context"

	"sluice/internal/plan"
)

// Counter is a Backend that counts connections.
type Counter interface {
	// Connections tells how many new connections each Service port has had since its counter was made. A port that is
	// not in the kernel is absent. It may be called at any time.
	Connections(context.Context) (map[plan.PortID]uint64, error)
}
