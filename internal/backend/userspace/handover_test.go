package userspace_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/backend/userspace"
	"sluice/internal/config"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/relay"
	"sluice/internal/testkit/scenario"
)

// process is what a daemon has of this mode.
type process struct {
	*rig
	proxy *relay.Server
}

// start makes one that gets the sockets of the process before.
func start(t *testing.T, r *rig, inherited []relay.Socket) *process {
	t.Helper()
	all := scenario.Modes()
	inner := all[slices.IndexFunc(all, func(m scenario.Mode) bool { return m.Name == config.ModeNFTables })]
	p := &process{rig: &rig{T: t, Lab: r.Lab, planner: r.planner}}
	err := r.Node().Do(func() error {
		rules, err := inner.InKernel(t, r.Node())
		if err != nil {
			return err
		}
		if p.proxy, err = relay.New(relay.Config{In: r.Node().Do, Inherited: inherited}); err != nil {
			return err
		}
		opts := userspace.DefaultOptions()
		opts.Before = map[relay.Key]uint16{}
		for _, s := range inherited {
			opts.Before[s.Key] = s.Listen.Port()
		}
		p.backend = userspace.New(opts, userspace.Deps{Rules: rules, Relay: p.proxy})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.proxy.Stop(canceled()) }) // which says that it was not given the time to wait
	p.rules = p.backend.Compile(r.planner.Plan())
	return p
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// apply changes nothing but what is left over.
func (p *process) apply() {
	p.Helper()
	err := p.Node().Do(func() error {
		_, err := p.backend.Apply(p.Context(), p.rules, backend.Request{})
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
}

// A new process takes over under load, again and again, with ports that its own numbers would not give it: no connection is
// refused, and one that is open goes on.
func TestNextProcessTakesOver(t *testing.T) {
	r := &rig{T: t, Lab: scenario.Up(t, lab.Reference()), planner: newPlanner()}
	serve(t, r.Host("pods-a"), model.TCP, "10.244.1.5:8080")
	r.planner.Update(service(model.TCP, 8080, []string{"10.244.1.5"}))
	p := start(t, r, nil)
	first := p.proxyPort()
	if _, err := r.Node().ServeAll(model.TCP, first); err != nil { // so that it has the next one
		t.Fatal(err)
	}
	p.apply()
	c, o, err := r.Host("pods-a").Connect(lab.Dial{From: pod, To: frontend, Protocol: model.TCP})
	if err != nil || c == nil {
		t.Fatal(o, err)
	}
	defer func() { _ = c.Close() }()
	load := r.Host("pods-a").Load(lab.Dial{From: pod, To: frontend, Protocol: model.TCP}, time.Millisecond)
	for range 5 {
		time.Sleep(50 * time.Millisecond)
		sockets, err := p.proxy.Export(func(relay.Key) bool { return true })
		if err != nil || len(sockets) != 1 {
			t.Fatalf("%d sockets, %v", len(sockets), err)
		}
		p = start(t, r, sockets)
		p.apply()
		if got := p.proxyPort(); got != first+1 {
			t.Fatalf("the next process has port %d, want %d as before", got, first+1)
		}
	}
	tally, err := load.Stop()
	if err != nil || tally.Total < 10 || tally.Forwarded() != tally.Total {
		t.Errorf("%+v, %v; want no failure", tally, err)
	}
	if err := c.Echo("still there?"); err != nil {
		t.Error(err)
	}
}
