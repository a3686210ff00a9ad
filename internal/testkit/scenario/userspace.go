package scenario

import (
	"context"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/userspace"
	"sluice/internal/config"
	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

func compileUserspace(p *plan.Plan) backend.Ruleset {
	return userspace.Compile(p, userspace.DefaultOptions(), compileNFTables)
}

func userspaceInKernel(t testing.TB, node *lab.Host) (backend.Backend, error) {
	return proxied(t, node, nftablesInKernel)
}

// UserspaceOverIPTables is mode userspace where there is no nf_tables: the same proxy over rules of iptables.
func UserspaceOverIPTables() Mode {
	m := modeNamed(config.ModeUserspace)
	m.Compile = func(p *plan.Plan) backend.Ruleset {
		return userspace.Compile(p, userspace.DefaultOptions(), compileIPTables)
	}
	m.InKernel = func(t testing.TB, node *lab.Host) (backend.Backend, error) { return proxied(t, node, iptablesInKernel) }
	return m
}

// proxied is mode userspace over another mode, with a proxy on a node that goes with the test.
func proxied(t testing.TB, node *lab.Host, inner func(testing.TB, *lab.Host) (backend.Backend, error)) (backend.Backend, error) {
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
