package gen

import (
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/plan"
)

// TestReachesEveryOutcome fails if what is drawn no longer leads to every kind of decision.
func TestReachesEveryOutcome(t *testing.T) {
	type outcome struct {
		action plan.Action
		client plan.Client
		kind   plan.Kind
		guard  plan.Guard
	}
	seen := map[outcome]int{}
	worlds := 5
	if testing.Short() {
		worlds = 25 // rapid calls five times less often
	}
	rapid.Check(t, func(t *rapid.T) {
		for range worlds {
			cfg := Config(t)
			cfg.GuardClusterIPs = true
			p := plan.Build(cfg, Host(t), Snapshot(t))
			for range 50 {
				d := p.Decide(Packet(t, p))
				seen[outcome{d.Action, d.Client, d.Frontend.Kind, d.Guard}]++
			}
		}
	})
	for _, client := range plan.Clients {
		if seen[outcome{plan.Reject, client, 0, plan.GuardPort}] == 0 || seen[outcome{plan.Drop, client, 0, plan.GuardRange}] == 0 {
			t.Errorf("no packet of a %s to a guarded address", client)
		}
	}
	for _, action := range []plan.Action{plan.Forward, plan.Reject, plan.Drop} {
		for _, client := range plan.Clients {
			for _, kind := range []plan.Kind{plan.ClusterIP, plan.ExternalIP, plan.LoadBalancerIP, plan.NodePort} {
				never := action == plan.Drop && kind != plan.ClusterIP && kind != plan.LoadBalancerIP && client != plan.ClientOutside
				if o := (outcome{action, client, kind, plan.Unguarded}); seen[o] == 0 && !never {
					t.Errorf("no packet with %s for a %s at a %s", action, client, kind)
				}
			}
		}
	}
}
