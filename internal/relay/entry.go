package relay

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"sluice/internal/relay/count"
	"sluice/internal/relay/pick"
)

// entry is a Target that is listened at.
type entry struct {
	name     string
	listen   netip.AddrPort
	picker   *pick.Picker
	count    *count.Counter // of the Service port
	listener listener
	// cuts end what goes on of what came by listeners of the Target that have stopped, and tell how many those were.
	cuts []func() int
}

// listener is what the engine of a protocol makes of a socket.
type listener interface {
	// change makes t what is new from now on is for.
	change(t Target)
	Counts() count.Counts
	// Stop takes nothing new from the socket. What has come by it goes on.
	Stop()
	// lend returns the socket, for another process, and takes nothing from it until Resume.
	lend() (*os.File, error)
	Resume()
	// retire is Stop because nobody is to come by the socket any more. It returns what ends what has come by it and goes
	// on, and tells how many those were; nil if nothing goes on.
	retire() (cut func() int)
}

// newEntry makes an entry that is not listened at yet. What is known of the endpoints stays if the Target was at
// another port before.
func newEntry(t Target, before *entry) *entry {
	e := &entry{name: t.String(), listen: t.Listen}
	if before != nil {
		e.picker = before.picker
		return e
	}
	e.picker = pick.New(pick.Config{Balancing: t.Balancing, Affinity: t.Affinity, Now: time.Now, Rand: rand.IntN})
	e.picker.Set(t.Endpoints, t.Balancing, t.Affinity)
	return e
}

// stop ends the listener. What has come by it goes on.
func (e *entry) stop() {
	if cut := e.listener.retire(); cut != nil {
		e.cuts = append(e.cuts, cut)
	}
}

func (e *entry) change(t Target) {
	e.picker.Set(t.Endpoints, t.Balancing, t.Affinity)
	e.listener.change(t)
}
