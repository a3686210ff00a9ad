package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"sluice/internal/kernel/instance"
	"sluice/internal/relay"
	"sluice/internal/status"
)

// A daemon can take the place of one that runs. That one stops to write rules, lets go of the network namespace, and
// serves on by its proxy. If this one has a proxy too, it borrows those of the other's listening sockets that it needs. When
// the rules of this one stand it says so; the other stops to listen, and ends with the connections that it relays. So nobody
// is refused in between. If this one dies before, the other goes on: it has all its sockets still.

// errSucceeded is why a daemon ends that another one follows.
var errSucceeded = errors.New("another sluice takes this one's place")

// leaveTime is how long a daemon may take to stop its parts and let go of the network namespace, or to hand over.
const leaveTime = 30 * time.Second

// letGone is the byte by which the daemon before tells that it has let go, and stands the one by which this one tells that
// its rules stand. One of an earlier version hangs up instead.
const (
	letGone = 'g'
	stands  = 'k'
)

// sockets are those that the daemon after wants, and the byte by which it asks for them.
type sockets byte

const (
	redirected sockets = 's' // that rules lead to
	direct     sockets = 'd' // at loopback addresses
)

func (w sockets) match(k relay.Key) bool { return k.Direct == (w == direct) }

// predecessor is the daemon whose place this one takes. Nil: there was none.
type predecessor struct{ conn *net.UnixConn }

// take claims the network namespace, from the daemon that works on it if so asked.
func (in Daemon) take(ctx context.Context) (*instance.Claim, *predecessor, error) {
	claim, err := instance.Take()
	if !in.TakeOver || !errors.Is(err, instance.ErrRunning) {
		return claim, nil, err
	}
	if err := in.tryMode(ctx); err != nil {
		return nil, nil, fmt.Errorf("the sluice that runs stays: %w", err)
	}
	before, err := succeed()
	if err != nil {
		return nil, nil, fmt.Errorf("take the place of the sluice that runs: %w", err)
	}
	if claim, err = instance.Take(); err != nil {
		return nil, nil, errors.Join(err, before.leave())
	}
	in.Log.Info("taking the place of the sluice that ran here")
	return claim, before, nil
}

// tryMode tells why the mode cannot start, while the daemon before still works.
func (in Daemon) tryMode(ctx context.Context) error {
	if in.Config.Mode == "" {
		return nil // one that can start will be chosen
	}
	log := slog.New(slog.DiscardHandler)
	proxy := &relayOfDaemon{log: log}
	be, err := modeOf(in.Config, proxy).start(ctx, in.Config, log, func() {})
	if err != nil {
		return err
	}
	return errors.Join((&engine{backend: be}).close(), proxy.end(ctx))
}

// succeed asks the daemon that runs for its place, and waits until it has let go.
func succeed() (*predecessor, error) {
	conn, err := instance.Dial()
	if err != nil {
		return nil, err
	}
	p := &predecessor{conn.(*net.UnixConn)}
	var answer [1]byte
	err = errors.Join(conn.SetDeadline(time.Now().Add(leaveTime)), status.Succeed(conn))
	if err == nil {
		_, err = io.ReadFull(conn, answer[:])
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it hung up: it is about to end, or another one takes its place")
	}
	if err == nil && answer[0] != letGone {
		err = fmt.Errorf("it answers %q", answer)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return p, conn.SetDeadline(time.Time{})
}

// handed is what a note says of one socket.
type handed struct {
	Key    relay.Key
	Listen netip.AddrPort
}

// sockets are listening sockets of the proxy before.
func (p *predecessor) sockets(wanted sockets) ([]relay.Socket, error) {
	if p == nil {
		return nil, nil
	}
	err := p.conn.SetDeadline(time.Now().Add(leaveTime))
	if err == nil {
		_, err = p.conn.Write([]byte{byte(wanted)})
	}
	if err != nil {
		return nil, err
	}
	note, files, err := instance.ReceiveFiles(p.conn)
	if err != nil {
		return nil, err
	}
	var list []handed
	if err := json.Unmarshal(note, &list); err != nil {
		return nil, errors.Join(fmt.Errorf("a note of sockets: %w", err), closeFiles(files))
	}
	if len(list) != len(files) {
		return nil, errors.Join(fmt.Errorf("%d sockets came with a note of %d", len(files), len(list)), closeFiles(files))
	}
	all := make([]relay.Socket, len(list))
	for i, h := range list {
		all[i] = relay.Socket{Key: h.Key, Listen: h.Listen, File: files[i]}
	}
	return all, nil
}

// dismiss tells the daemon before that it is not needed any more.
func (p *predecessor) dismiss() error {
	if p == nil {
		return nil
	}
	err := p.conn.SetDeadline(time.Now().Add(leaveTime))
	_, _ = p.conn.Write([]byte{stands}) // it may have gone by itself
	return errors.Join(err, p.conn.Close())
}

// leave has the daemon before go on.
func (p *predecessor) leave() error {
	if p == nil {
		return nil
	}
	return p.conn.Close()
}

func closeSockets(all []relay.Socket) error {
	files := make([]*os.File, len(all))
	for i, s := range all {
		files[i] = s.File
	}
	return closeFiles(files)
}

func closeFiles(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
