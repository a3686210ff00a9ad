package ipvs

import (
	"context"
	"maps"
	"slices"

	"sluice/internal/backend"
)

// takeBack removes virtual servers that are new and whose rules were not written: nothing would keep out whom a source range
// or a policy does. Those that were there before had rules, and stay as these do.
func (a *run) takeBack(ctx context.Context) error {
	failed := backend.FailedFamilies(a.rulesFailed)
	var ops []operation
	for _, s := range slices.SortedFunc(maps.Keys(a.made), Server.Compare) {
		if port := a.made[s]; a.unruled[port] != nil || failed[port.Family] {
			ops = append(ops, operation{verb: deleteServer, server: s})
			delete(a.made, s)
		}
	}
	return a.write(ctx, ops)
}
