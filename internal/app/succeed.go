package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"sluice/internal/kernel/instance"
	"sluice/internal/relay"
	"sluice/internal/status"
)

// A daemon can take the place of one that runs: it gets that one's listening sockets, so that nobody is refused in
// between. The one before has stopped all else by then, and ends when the connections that it relays have.

// errSucceeded is why a daemon ends that another one follows.
var errSucceeded = errors.New("another sluice takes this one's place")

// leaveTime is how long a daemon may take to stop its parts and let go of the network namespace.
const leaveTime = 30 * time.Second

// letGoPoll is how often it is tried whether the one before has let go, which comes next after its sockets.
const letGoPoll = time.Millisecond

// handed is what a note says of one socket.
type handed struct {
	Key    relay.Key
	Listen netip.AddrPort
}

// take claims the network namespace, from the daemon that works on it if so asked.
func (in Daemon) take(ctx context.Context) (*instance.Claim, []relay.Socket, error) {
	claim, err := instance.Take()
	if !in.TakeOver || !errors.Is(err, instance.ErrRunning) {
		return claim, nil, err
	}
	sockets, err := succeed()
	if err != nil {
		return nil, nil, fmt.Errorf("take the place of the sluice that runs: %w", err)
	}
	for end := time.Now().Add(leaveTime); ; time.Sleep(letGoPoll) {
		claim, err = instance.Take()
		if !errors.Is(err, instance.ErrRunning) || time.Now().After(end) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeSockets(sockets))
	}
	in.Log.Info("took the place of the sluice that ran here", "sockets", len(sockets))
	return claim, sockets, nil
}

// succeed asks for the place of the daemon that runs, and takes its sockets.
func succeed() ([]relay.Socket, error) {
	conn, err := instance.Dial()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // all was said
	if err := errors.Join(conn.SetDeadline(time.Now().Add(leaveTime)), status.Succeed(conn)); err != nil {
		return nil, err
	}
	note, files, err := instance.ReceiveFiles(conn.(*net.UnixConn))
	if err != nil {
		return nil, err
	}
	var list []handed
	if err := json.Unmarshal(note, &list); err != nil || len(list) != len(files) {
		return nil, fmt.Errorf("%d sockets came with a note of %d (%v)", len(files), len(list), err)
	}
	sockets := make([]relay.Socket, len(list))
	for i, h := range list {
		sockets[i] = relay.Socket{Key: h.Key, Listen: h.Listen, File: files[i]}
	}
	return sockets, nil
}

// successor keeps the connection of the process that follows this one, which then stops.
func (d *daemon) successor(conn net.Conn) bool {
	select {
	case d.next <- conn:
		d.stop(errSucceeded)
		return true
	default:
		return false
	}
}

// handToNext gives the sockets of a daemon that has stopped to the one that follows, if one does, and lets go of the
// network namespace. What is being relayed goes on until it ends, or until ctx does.
func (d *daemon) handToNext(ctx context.Context, letGo func() error) error {
	select {
	case conn := <-d.next:
		defer func() { _ = conn.Close() }() // all was said
		err := errors.Join(d.handOverSockets(conn), letGo())
		d.Log.Info("another sluice has taken over; what is being relayed goes on until it ends")
		return errors.Join(err, d.relay.end(ctx))
	default:
		ended, cancel := context.WithCancel(ctx)
		cancel() // connections that are relayed end with the process
		return errors.Join(letGo(), d.relay.end(ended))
	}
}

func (d *daemon) handOverSockets(conn net.Conn) error {
	sockets, err := d.relay.export()
	if err != nil {
		return err
	}
	list, files := make([]handed, len(sockets)), make([]*os.File, len(sockets))
	for i, s := range sockets {
		list[i], files[i] = handed{s.Key, s.Listen}, s.File
	}
	note, err := json.Marshal(list)
	if err == nil {
		err = errors.Join(conn.SetWriteDeadline(time.Now().Add(leaveTime)), instance.SendFiles(conn.(*net.UnixConn), note, files))
	}
	return errors.Join(err, closeSockets(sockets))
}

func closeSockets(sockets []relay.Socket) (err error) {
	for _, s := range sockets {
		err = errors.Join(err, s.File.Close())
	}
	return err
}
