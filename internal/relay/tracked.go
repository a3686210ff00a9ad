package relay

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"sluice/internal/kernel/conntrack"
	"sluice/internal/model"
	"sluice/internal/relay/count"
)

// tracked asks connection tracking where datagrams went before they were redirected: a socket of UDP cannot be asked.
// It opens its way there when it is first needed.
type tracked struct {
	in  func(func() error) error
	log *slog.Logger

	failed count.Occasion

	mu   sync.Mutex
	conn *conntrack.Conn
}

// original is where a client's datagrams went that came to local; false if they went nowhere else, or nobody knows.
func (k *tracked) original(client, local netip.AddrPort) (to netip.AddrPort, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	flow, ok, err := k.ask(client, local)
	if err != nil {
		k.close() // the next one may fare better
		if n, tell := k.failed.Happened(time.Now()); tell {
			k.log.Error("datagrams are dropped: it can't be found out where they went", "times", n, "error", err)
		}
	}
	return flow.Dest, ok && flow.Dest != local
}

func (k *tracked) ask(client, local netip.AddrPort) (f conntrack.Flow, ok bool, err error) {
	if err := k.open(); err != nil {
		return f, false, err
	}
	return k.conn.ByReply(uint8(model.UDP), local, client)
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
