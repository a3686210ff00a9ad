package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"sluice/internal/config"
	"sluice/internal/relay"
)

// relayOfDaemon is the daemon's one proxy, made when a mode first needs it. It outlives the modes: what it relays goes on
// in whichever mode follows.
type relayOfDaemon struct {
	log       *slog.Logger
	inherited []relay.Socket

	mu     sync.Mutex
	server *relay.Server
}

// open is the proxy.
func (r *relayOfDaemon) open(c config.Userspace) (*relay.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server != nil {
		return r.server, nil
	}
	server, err := relay.New(relay.Config{
		Log: r.log, Inherited: r.inherited, Drain: c.Drain,
		Connections: c.MaxConnections, Sessions: c.MaxSessions, UDPIdle: c.UDPIdle,
	})
	if err == nil {
		r.server, r.inherited = server, nil
	}
	return server, err
}

// close ends the listeners that rules lead to.
func (r *relayOfDaemon) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.server.Stats().Targets {
		if !k.Direct {
			r.server.Remove(k)
		}
	}
}

// export gives the listening sockets away; those that nobody has used yet, too.
func (r *relayOfDaemon) export() ([]relay.Socket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	unused := r.inherited
	r.inherited = nil
	if r.server == nil {
		return unused, nil
	}
	sockets, err := r.server.Export()
	return append(unused, sockets...), err
}

// end waits until all that is being relayed has ended, or cuts it off when ctx ends.
func (r *relayOfDaemon) end(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := closeSockets(r.inherited)
	if r.server != nil {
		if stopErr := r.server.Stop(ctx); ctx.Err() == nil {
			err = errors.Join(err, stopErr)
		}
	}
	return err
}
