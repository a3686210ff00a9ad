package scenario

import (
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/lab"
	"sluice/internal/plan"
)

func compileNFTables(p *plan.Plan) backend.Ruleset {
	return nftables.Compile(p, nftables.DefaultOptions())
}

func nftablesInKernel(testing.TB, *lab.Host) (backend.Backend, error) {
	return nftables.New(nftables.DefaultOptions(), nftables.Deps{RouteLocalnet: routeLocalnet}), nil
}
