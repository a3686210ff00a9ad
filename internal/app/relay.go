package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sluice/internal/backend/userspace"
	"sluice/internal/config"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// relayOfDaemon is the daemon's one proxy, made when a mode first needs it. It outlives the modes: what it relays goes on
// in whichever mode follows.
type relayOfDaemon struct {
	log *slog.Logger

	mu     sync.Mutex // guards all following fields; not held while what is relayed ends
	before *predecessor
	server *relay.Server
	// inherited is where the daemon before listened for what rules lead to.
	inherited map[relay.Key]uint16
	// closing closes what rules led to; nil: nothing is to be closed.
	closing *time.Timer
}

// open is the proxy, and where the one before it listened. A new one takes over what the daemon before has of the sockets
// that are wanted; the others serve until this one's rules stand.
func (r *relayOfDaemon) open(c config.Userspace, wanted sockets) (*relay.Server, map[relay.Key]uint16, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing != nil && wanted == redirected {
		r.closing.Stop() // the mode is back, and sees to what it does not need
		r.closing = nil
	}
	if r.server != nil {
		return r.server, r.inherited, nil
	}
	sockets, err := r.before.sockets(wanted)
	if err != nil {
		r.log.Warn("the sockets of the sluice that ran here are not taken over, so clients may be refused for a moment", "error", err)
	}
	server, err := relay.New(relay.Config{
		Log: r.log, Inherited: sockets, Drain: c.Drain,
		Connections: c.MaxConnections, Sessions: c.MaxSessions, UDPIdle: c.UDPIdle,
	})
	if err != nil {
		return nil, nil, errors.Join(err, closeSockets(sockets))
	}
	r.server, r.inherited = server, map[relay.Key]uint16{}
	for _, s := range sockets {
		if !s.Direct {
			r.inherited[s.Key] = s.Listen.Port()
		}
	}
	return r.server, r.inherited, nil
}

// settle is for when the rules stand: nothing that was inherited will be needed that is not in use by now, and nor will
// the daemon before.
func (r *relayOfDaemon) settle() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server != nil {
		r.server.DropInherited()
	}
	before := r.before
	r.before, r.inherited = nil, nil
	return before.dismiss()
}

// closeSoon ends the listeners that rules led to, when who was led there a moment ago is there.
func (r *relayOfDaemon) closeSoon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing != nil {
		r.closing.Stop() // of the same listeners: the mode came and went while rules of yet another one were in force
	}
	r.closing = time.AfterFunc(userspace.Linger, r.close)
}

// linger waits until who was led here a moment ago is here, if anybody was.
func (r *relayOfDaemon) linger(ctx context.Context) {
	if len(r.ports()) == 0 {
		return
	}
	select {
	case <-time.After(userspace.Linger):
	case <-ctx.Done():
	}
}

// close ends the listeners that rules led to.
func (r *relayOfDaemon) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing == nil {
		return // the mode came back at this moment
	}
	r.closing = nil
	for k := range r.server.Ports() {
		r.server.Close(k)
	}
}

// ports are where rules lead to.
func (r *relayOfDaemon) ports() map[relay.Key]uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil
	}
	return r.server.Ports()
}

// stats are its numbers; nil: there is none yet.
func (r *relayOfDaemon) stats() *relay.Stats {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	if server == nil {
		return nil
	}
	stats := server.Stats()
	return &stats
}

// export gives listening sockets away.
func (r *relayOfDaemon) export(wanted sockets) ([]relay.Socket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil, nil
	}
	return r.server.Export(wanted.match)
}

// resume is for when the daemon that was to follow has died: the proxy listens as it did.
func (r *relayOfDaemon) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return
	}
	r.server.Resume()
	r.inherited = r.server.Ports()
}

// end waits until all that is being relayed has ended, or cuts it off when ctx ends.
func (r *relayOfDaemon) end(ctx context.Context) error {
	r.mu.Lock()
	err, server := r.before.leave(), r.server
	r.mu.Unlock()
	if server == nil {
		return err
	}
	if stopErr := server.Stop(ctx); ctx.Err() == nil {
		err = errors.Join(err, stopErr)
	}
	return err
}

// proxied is what the proxy does for Service ports.
type proxied struct {
	ports map[relay.Key]uint16 // where rules lead to
	stats *relay.Stats
}

func (r *relayOfDaemon) proxied() proxied { return proxied{r.ports(), r.stats()} }

// of is where rules lead to for a Service port, and what it has open; nil: they do not lead to the proxy, so that this would
// not be all.
func (p proxied) of(id plan.PortID) (at [2]uint16, open *int64) {
	at = [...]uint16{p.ports[relay.Key{Port: id, List: plan.ListCluster}], p.ports[relay.Key{Port: id, List: plan.ListLocal}]}
	if at == [2]uint16{} || p.stats == nil {
		return at, nil
	}
	n := p.stats.Ports[id].Open
	return at, &n
}
