package scenario

import (
	"context"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/userspace"
	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/testkit/flow"
)

func compileUserspace(p *plan.Plan) backend.Ruleset {
	return userspace.Compile(p, userspace.DefaultOptions(), compileNFTables)
}

func userspaceInKernel(t testing.TB, node *lab.Host) (backend.Backend, error) {
	t.Helper()
	return proxied(t, node, nftablesInKernel)
}

// viaProxy: connections end at a proxy.
func viaProxy(p *plan.Plan, f flow.Flow) flow.Flow { return f.Proxied(p) }

// UserspaceOverIPTables is mode userspace where there is no nf_tables: the same proxy over rules of iptables.
func UserspaceOverIPTables() Mode {
	return Mode{
		Name: "userspace over iptables", Becomes: viaProxy,
		Compile: func(p *plan.Plan) backend.Ruleset {
			return userspace.Compile(p, userspace.DefaultOptions(), compileIPTables)
		},
		InKernel: func(t testing.TB, node *lab.Host) (backend.Backend, error) {
			t.Helper()
			return proxied(t, node, iptablesInKernel)
		},
	}
}

// proxied is mode userspace over another mode, with a proxy on a node that goes with the test.
func proxied(t testing.TB, node *lab.Host, inner func(testing.TB, *lab.Host) (backend.Backend, error)) (backend.Backend, error) {
	t.Helper()
	rules, err := inner(t, node)
	if err != nil {
		return nil, err
	}
	proxy, err := relay.New(relay.Config{In: node.Do})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		_ = proxy.Stop(cut) // which says that it was not given the time to wait
	})
	return userspace.New(userspace.DefaultOptions(), userspace.Deps{Rules: rules, Relay: proxy}), nil
}
