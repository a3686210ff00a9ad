package relay

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"sluice/internal/kernel/conntrack"
	"sluice/internal/model"
	"sluice/internal/relay/count"
	"sluice/internal/relay/hops"
)

// tracked asks connection tracking where datagrams went before they were redirected, since a socket of UDP cannot be asked,
// and who a client was before rules gave it another address. It opens its way there when it is first needed.
type tracked struct {
	in  func(func() error) error
	log *slog.Logger

	failed count.Occasion

	mu   sync.Mutex
	conn *conntrack.Conn
}

// original is where a client's datagrams went that came to local; false if they went nowhere else, or nobody knows.
func (k *tracked) original(client, local netip.AddrPort) (to netip.AddrPort, ok bool) {
	flow, ok, err := k.ask(model.UDP, client, local)
	if err != nil {
		if n, tell := k.failed.Happened(time.Now()); tell {
			k.log.Error("datagrams are dropped: it can't be found out where they went", "times", n, "error", err)
		}
	}
	return flow.Dest, ok && flow.Dest != local
}

// source is for [hops.NewSet]. Where nobody knows better, the client is who it seems.
func (k *tracked) source(p model.Protocol) func(hops.Way) netip.AddrPort {
	return func(w hops.Way) netip.AddrPort {
		if flow, ok, err := k.ask(p, w.Client, w.Local); ok && err == nil {
			return flow.Source
		}
		return w.Client
	}
}

func (k *tracked) ask(p model.Protocol, client, local netip.AddrPort) (f conntrack.Flow, ok bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err = k.open(); err == nil {
		f, ok, err = k.conn.ByReply(uint8(p), local, client)
	}
	if err != nil {
		k.close() // the next one may fare better
	}
	return f, ok, err
}

func (k *tracked) open() error {
	if k.conn != nil {
		return nil
	}
	return k.in(func() (err error) {
		k.conn, err = conntrack.Open()
		return err
	})
}

// Close lets go of the way to connection tracking.
func (k *tracked) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.close()
}

func (k *tracked) close() {
	if k.conn != nil {
		_ = k.conn.Close() // nothing was written
		k.conn = nil
	}
}
