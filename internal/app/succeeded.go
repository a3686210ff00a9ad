package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"sluice/internal/kernel/instance"
)

// dyingTime is how long the claim of a daemon that hung up may last before it is taken for one that lives.
const dyingTime = 2 * time.Second

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

// leave lets go of the network namespace when all but the proxy has stopped, to the daemon that follows if there is one.
// What is being relayed goes on then until it ends, or until ctx does; else it ends here. If that daemon dies before it can do
// without this one, the claim comes back, to go on with.
func (d *daemon) leave(ctx context.Context, letGo func() error) (again *instance.Claim, err error) {
	err = letGo()
	select {
	case conn := <-d.next:
		d.Log.Info("another sluice takes over; what is being relayed goes on until it ends")
		again, followErr := d.follow(ctx, conn.(*net.UnixConn))
		if again != nil {
			d.Log.Warn("the sluice that was to take over has died; this one goes on", "error", followErr)
			d.relay.resume()
			return again, err
		}
		return nil, errors.Join(err, followErr, d.relay.end(ctx))
	default:
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return nil, errors.Join(err, d.relay.end(ended))
	}
}

// follow serves the daemon that follows until it needs this one no more, or has died: then it returns the claim.
func (d *daemon) follow(ctx context.Context, next *net.UnixConn) (again *instance.Claim, err error) {
	defer func() { _ = next.Close() }() // all was said
	defer context.AfterFunc(ctx, func() { _ = next.Close() })()
	stood, err := d.serve(next)
	if !stood && ctx.Err() == nil {
		again = reclaim(ctx)
	}
	if again != nil {
		return again, err
	}
	d.relay.linger(ctx)
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		err = nil // one of an earlier version says no more, or this one is to end
	}
	return nil, err
}

// serve does what the daemon that follows asks for, until it says that its rules stand.
func (d *daemon) serve(next *net.UnixConn) (stood bool, err error) {
	if _, err := next.Write([]byte{letGone}); err != nil {
		return false, err
	}
	for {
		var ask [1]byte
		if _, err := next.Read(ask[:]); err != nil || ask[0] == stands {
			return err == nil, err
		}
		if err := d.handOut(next, sockets(ask[0])); err != nil {
			return false, fmt.Errorf("hand sockets over: %w", err)
		}
	}
}

// reclaim takes the network namespace back from a daemon that has died; nil: somebody works on it.
func reclaim(ctx context.Context) *instance.Claim {
	for end := time.Now().Add(dyingTime); ; time.Sleep(10 * time.Millisecond) {
		claim, err := instance.Take()
		if err == nil {
			return claim
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return nil
		}
	}
}

// handOut lends sockets of the proxy to the daemon that follows.
func (d *daemon) handOut(next *net.UnixConn, wanted sockets) error {
	all, err := d.relay.export(wanted)
	if err != nil {
		return err
	}
	list, files := make([]handed, len(all)), make([]*os.File, len(all))
	for i, s := range all {
		list[i], files[i] = handed{s.Key, s.Listen}, s.File
	}
	note, err := json.Marshal(list)
	if err == nil {
		err = errors.Join(next.SetWriteDeadline(time.Now().Add(leaveTime)), instance.SendFiles(next, note, files))
	}
	return errors.Join(err, closeSockets(all))
}
