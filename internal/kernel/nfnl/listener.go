package nfnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// listenBuffer holds the notifications of some 300,000 elements. It takes memory only as far as they queue up.
const listenBuffer = 64 << 20

// Listener hears what others change in nf_tables, in one network namespace. Receive is for one goroutine at a time; the
// other methods may be called meanwhile.
type Listener struct {
	socket *socket
	in     []byte
}

// Listen hears of all changes from now on in the network namespace of the calling thread, except those that the socket
// with port number ours makes ([Conn.PortID]); 0 leaves out nothing. Where those are left out the kernel drops them
// before they are queued.
func Listen(ours uint32) (*Listener, error) {
	s, err := dial()
	if err != nil {
		return nil, fmt.Errorf("open socket for notifications of nf_tables: %w", err)
	}
	l := &Listener{socket: s, in: make([]byte, datagramLen)}
	if err := l.configure(ours); err != nil {
		_ = s.close()
		return nil, fmt.Errorf("listen to notifications of nf_tables: %w", err)
	}
	return l, nil
}

// configure joins the group last, so that the filter misses nothing.
func (l *Listener) configure(ours uint32) error {
	if err := l.socket.SetReadBuffer(listenBuffer); err != nil {
		return err
	}
	if ours != 0 {
		program, err := allBut(ours)
		if err != nil {
			return err
		}
		if err := l.socket.SetBPF(program); err != nil {
			return err
		}
	}
	return l.Resume()
}

// allBut is a filter that drops the datagrams whose first message has the given port number. All messages of a datagram
// come from one transaction, so the first speaks for all.
func allBut(port uint32) ([]bpf.RawInstruction, error) {
	const portOffset = 12
	return bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: portOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: networkOrder(port), SkipTrue: 1},
		bpf.RetConstant{Val: 1<<32 - 1},
		bpf.RetConstant{Val: 0},
	})
}

// networkOrder is a number of this machine's order as a filter loads it, most significant byte first.
func networkOrder(n uint32) uint32 {
	return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, n))
}

// Close ends the listener. A Receive that waits returns os.ErrClosed.
func (l *Listener) Close() error { return l.socket.close() }

// Pause stops listening, so that the kernel need not make notifications, which costs three
// quarters of what the changes themselves do (BenchmarkCommit). What was heard before is still received. What others change until Resume is not; whether they did, the
// generation tells: it must have moved by one's own commits alone.
func (l *Listener) Pause() error { return l.socket.LeaveGroup(unix.NFNLGRP_NFTABLES) }

// Resume listens again, from now on.
func (l *Listener) Resume() error { return l.socket.JoinGroup(unix.NFNLGRP_NFTABLES) }

// Receive waits for a change and hands over each message of one datagram; one transaction makes one or more datagrams,
// the last of which is the new generation (NFT_MSG_NEWGEN). The data are only valid until the function returns; port is
// the number of the socket that made the change.
//
// The error is [ErrLost] if changes came faster than they were received. What was queued has been thrown away then, so
// that every later change is heard again: the caller reads the state anew after ErrLost, not before. If ctx ends it is
// the context's error, and after Close os.ErrClosed.
func (l *Listener) Receive(ctx context.Context, each func(kind uint16, port uint32, data []byte)) error {
	n, err := l.next(ctx)
	switch {
	case errors.Is(err, unix.ENOBUFS):
		if err := l.discard(ctx); err != nil {
			return err
		}
		return ErrLost
	case err != nil:
		return err
	}
	for b := l.in[:n]; len(b) > 0; {
		m, rest, ok := cut(b)
		if !ok {
			return errMalformed
		}
		each(m.kind, m.port, m.data)
		b = rest
	}
	return nil
}

// next reads a datagram. Only if there is none yet it pays for being woken by the context.
func (l *Listener) next(ctx context.Context) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if n, err = l.socket.receive(l.in, false); !errors.Is(err, unix.EAGAIN) {
		return n, err
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = l.socket.SetReadDeadline(time.Unix(1, 0)) // fails only if closed, which wakes too
	})
	n, err = l.socket.receive(l.in, true)
	if !stop() {
		// The deadline must be gone before the next call, so it must have been set before it is cleared.
		<-woken
		_ = l.socket.SetReadDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ctx.Err()
	}
	return n, err
}

// discard empties the buffer. After an overrun the kernel drops every notification, and says so no second time, until
// the buffer was empty once.
func (l *Listener) discard(ctx context.Context) error {
	for {
		_, err := l.socket.receive(l.in, false)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil && !errors.Is(err, unix.ENOBUFS):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
