package scenario

import (
	"context"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/iptables"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
)

func compileIPTables(p *plan.Plan) backend.Ruleset {
	return iptables.New(iptables.DefaultOptions(), iptables.Deps{}).Compile(p)
}

// iptablesInKernel is the iptables mode with the variant of the programs that this machine has by default.
func iptablesInKernel(testing.TB, *lab.Host) (backend.Backend, error) {
	tools, err := iptexec.Choose(context.Background(), "")
	if err != nil {
		return nil, err
	}
	return iptables.New(iptables.DefaultOptions(), iptables.Deps{
		Tables: [2]iptables.Tables{
			model.IPv4: tables{tools, iptexec.IPv4},
			model.IPv6: tables{tools, iptexec.IPv6},
		},
		RouteLocalnet: routeLocalnet,
	}), nil
}

// routeLocalnet leaves it on: a lab goes away as a whole.
func routeLocalnet(bool) error {
	_, err := sysctl.Set("net.ipv4.conf.all.route_localnet", "1")
	return err
}

// tables never say whether others wrote, so every change is compared with what is there.
type tables struct {
	tools  *iptexec.Tools
	family iptexec.Family
}

func (t tables) Probe(context.Context) error { return nil }

func (t tables) Save(ctx context.Context) ([]byte, error) { return t.tools.Save(ctx, t.family) }

func (t tables) Restore(ctx context.Context, text []byte) error {
	return t.tools.Restore(ctx, t.family, text, iptexec.RestoreOptions{})
}

func (t tables) Packets(ctx context.Context, table iptables.Table, chain string) ([]uint64, error) {
	return t.tools.Packets(ctx, t.family, table.String(), chain)
}

func (t tables) Generation() (uint32, bool, error) { return 0, false, nil }
