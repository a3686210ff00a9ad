package scenario

import (
	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/plan"
)

func compileNFTables(p *plan.Plan) backend.Ruleset {
	return nftables.Compile(p, nftables.DefaultOptions())
}

func nftablesInKernel() (backend.Backend, error) {
	return nftables.New(nftables.DefaultOptions(), nftables.Deps{RouteLocalnet: routeLocalnet}), nil
}
